// What the multiply kernels of linear layers and expert MLPs share: output tiles, and how the limits of one tile's walk
// along k combine.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <vector>

#include "kernel/forms/form.h"

namespace foretoken {

struct MatmulTile {
  int rows = 128, columns = 128;
  constexpr bool operator==(const MatmulTile&) const = default;
};

// The sizes that libraries instantiate, from small to large.
inline constexpr MatmulTile matmul_tiles[] = {{16, 64},  {16, 128}, {32, 64},   {32, 128},  {64, 32},   {64, 64},
                                              {64, 128}, {128, 64}, {128, 128}, {128, 256}, {256, 128}, {256, 256}};
inline constexpr int matmul_tile_count = static_cast<int>(std::size(matmul_tiles));

// The same as numbers; sides are powers of two, so that their inverses are exact.
struct MatmulTileSides {
  double rows = 0, columns = 0, inverse_rows = 0, inverse_columns = 0;
};
inline constexpr auto matmul_tile_sides = [] {
  std::array<MatmulTileSides, matmul_tile_count> sides;
  for (size_t i = 0; i < sides.size(); ++i) {
    const double rows = matmul_tiles[i].rows, columns = matmul_tiles[i].columns;
    sides[i] = {.rows = rows, .columns = columns, .inverse_rows = 1 / rows, .inverse_columns = 1 / columns};
  }
  return sides;
}();

constexpr int matmul_tile_index(MatmulTile tile) {
  for (int i = 0; i < matmul_tile_count; ++i) {
    if (matmul_tiles[i] == tile) return i;
  }
  return -1;
}

// What may bound the k-loops of a grid, in seconds.
struct MatmulLimits {
  double compute = 0;  // tensor pipes
  double load = 0;     // operands from L2 into the processors
  double latency = 0;  // dependent steps of one tile
  double dram = 0;
  double cache = 0;  // streaming through L2
  double largest() const { return std::max({compute, load, latency, dram, cache}); }
};

// Seconds of the parts of a tile's work: constants and device facts multiplied out once per call.
struct TileCosts {
  double edge = 0;         // rows and columns lost to a tile's edge
  double multiply = 0;     // per multiply-add of one processor
  double byte = 0;         // per operand byte into one processor
  double slab = 0;         // per step along k
  double first_store = 0;  // per output value, first wave
  double store = 0;        // per output value, later waves
};

// Tiles that fit on a processor together hide one another's latency: the share of it that each adds.
inline double latency_share(double area) {
  return std::clamp(area * (1 / (2.7 * 16384)), 0.125, 1.0);
}

// Relative error below 1e-9; the same bits everywhere. x > 0, normal.
inline double quick_cube_root(double x) {
  double y = std::bit_cast<double>(std::bit_cast<uint64_t>(x) / 3 + 0x2A9F7893782DA1CEULL);
  for (int step = 0; step < 2; ++step) {  // Halley: the error is cubed
    const double cube = y * y * y;
    y *= (cube + 2 * x) / (2 * cube + x);
  }
  return y;
}

// Share of the traffic that misses a cache of which `bytes` are touched again and again: 0 well inside `capacity`, 1
// well beyond. The fifth power was the best fit of the sharpness.
inline double miss_share(double bytes, double capacity) {
  const double ratio = bytes / capacity, square = ratio * ratio, fifth = square * square * ratio;
  return fifth / (1 + fifth);
}

// Limits hide one another except where they are alike: cube root of the sum of cubes.
inline double overlapped(const MatmulLimits& l) {
  const double sum = l.compute * l.compute * l.compute + l.load * l.load * l.load + l.latency * l.latency * l.latency +
                     l.dram * l.dram * l.dram + l.cache * l.cache * l.cache;
  return sum > 0 ? quick_cube_root(sum) : 0;
}

inline void explain_limits(const MatmulLimits& l, std::vector<Explained>& lines) {
  using enum Explained::Kind;
  lines.push_back({limit, "tensor_pipes", l.compute, "s", "multiplies at the sustained rate, whole waves of tiles"});
  lines.push_back({limit, "l2_to_processors", l.load, "s", "operands loaded into the processors"});
  lines.push_back({limit, "step_latency", l.latency, "s", "steps along k that wait for one another"});
  lines.push_back({limit, "dram", l.dram, "s", "traffic that DRAM serves"});
  lines.push_back({limit, "l2_stream", l.cache, "s", "all traffic through L2"});
}

}  // namespace foretoken
