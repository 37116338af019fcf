// How a tile is stored, rank by rank, and what its metadata take (fiber trees of Sze et al., Efficient Processing of
// Deep Neural Networks, 2020, chapter 8).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/sparse/density.h"

namespace foretoken {

enum class FormatKind {
  uncompressed,  // U: every coordinate, no metadata
  bitmask,       // B: a bit for each coordinate
  coordinates,   // CP: the coordinate of each one that is not empty
  run_length,    // RLE: how many empty ones stand before each one that is not
  offsets,       // UOP: where each coordinate's words begin; above CP it makes CSR
};

std::optional<FormatKind> find_format(std::string_view name);
std::vector<std::string> format_names();
bool leaves_empty_ones_out(FormatKind kind);

struct RankFormat {
  FormatKind kind = FormatKind::uncompressed;
  int word_bits = 0;  // of a coordinate, run or offset; 0 = the level's usual word; a bitmask has bits
  // The loops of these dimensions, next to each other, make one rank; none named: the rank takes one loop.
  std::vector<int> dimensions;
};

// A rank of a tile: so many coordinates, each with a tile of these extents inside.
struct FiberRank {
  double coordinates = 1;
  std::vector<double> inside;
};

struct StoredTile {
  double share = 1;           // of the tile's words that are stored, on average
  double metadata_words = 0;  // coordinates, runs, offsets and bits
  double metadata_bits = 0;
};

// A rank of one coordinate costs nothing, and what the last rank points at are the words themselves.
StoredTile stored_tile(std::span<const RankFormat> formats, std::span<const FiberRank> ranks,
                       const DensityModel& density, int metadata_word_bits);

}  // namespace foretoken
