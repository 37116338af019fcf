#include "accelerator/sparse/format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr std::array<std::pair<std::string_view, FormatKind>, 5> named_formats{{
    {"U", FormatKind::uncompressed},
    {"B", FormatKind::bitmask},
    {"CP", FormatKind::coordinates},
    {"RLE", FormatKind::run_length},
    {"UOP", FormatKind::offsets},
}};

}  // namespace

std::optional<FormatKind> find_format(std::string_view name) {
  for (const auto& [known, format] : named_formats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const auto& [name, format] : named_formats) names.emplace_back(name);
  return names;
}

bool leaves_empty_ones_out(FormatKind kind) {
  return kind == FormatKind::bitmask || kind == FormatKind::coordinates || kind == FormatKind::run_length;
}

StoredTile stored_tile(std::span<const RankFormat> formats, std::span<const FiberRank> ranks,
                       const DensityModel& density, int metadata_word_bits) {
  ensure(formats.size() == ranks.size(), "every rank has a format");
  StoredTile tile;
  double fibers = 1, stored = 1;  // of the rank: all there could be, and those that are written down
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankFormat& format = formats[r];
    const double coordinates = ranks[r].coordinates;
    fibers *= coordinates;
    double entries = stored * coordinates;
    if (leaves_empty_ones_out(format.kind)) {
      entries = std::min(entries, fibers * (1 - density.empty_probability(ranks[r].inside)));
    }
    const bool last = r + 1 == ranks.size();
    double words = 0;
    switch (format.kind) {
      case FormatKind::uncompressed:
        break;
      case FormatKind::bitmask:
        words = stored * coordinates;
        break;
      case FormatKind::coordinates:
      case FormatKind::run_length:
        words = last ? entries : 2 * entries;  // and where the entry's own tile begins
        break;
      case FormatKind::offsets:
        words = last ? 0 : stored * (coordinates + 1);
        break;
    }
    if (coordinates > 1) {
      const int usual_bits = format.kind == FormatKind::bitmask ? 1 : metadata_word_bits;
      tile.metadata_words += words;
      tile.metadata_bits += words * (format.word_bits > 0 ? format.word_bits : usual_bits);
    }
    stored = entries;
  }
  tile.share = stored / fibers;
  return tile;
}

}  // namespace foretoken
