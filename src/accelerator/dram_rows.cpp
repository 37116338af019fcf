#include "accelerator/dram_rows.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace {

struct UsualRows {
  std::string_view component;
  DramRows rows;
};

// Organizations and timings of JEDEC's speed bins, as Ramulator 2 lists them (DDR3-1600K, DDR4-3200AA, HBM2 at 2 Gb/s,
// HBM3 at 6.4 Gb/s). LPDDR4-3200 and the refreshes of HBM2 are from memory of JESD209-4 and JESD235. Energies per bit
// of the library include an average share of activates, so these add none.
constexpr std::array<UsualRows, 5> usual_modules{{
    {"DDR3", {.row_bytes = 8192, .banks = 8, .switch_ns = 27.5, .gap_ns = 7.5, .refresh_share = 260.0 / 7800}},
    {"DDR4", {.row_bytes = 8192, .banks = 16, .switch_ns = 27.5, .gap_ns = 5.25, .refresh_share = 350.0 / 7800}},
    {"LPDDR4",
     {.row_bytes = 2048, .banks = 8, .channels = 4, .switch_ns = 36, .gap_ns = 10, .refresh_share = 280.0 / 3904}},
    {"HBM2",
     {.row_bytes = 1024, .banks = 16, .channels = 16, .switch_ns = 28, .gap_ns = 4, .refresh_share = 260.0 / 3900}},
    {"HBM3",
     {.row_bytes = 1024,
      .banks = 16,
      .channels = 32,
      .switch_ns = 35.6,
      .gap_ns = 3.75,
      .refresh_share = 200.0 / 3900}},
}};

double extent_of(const RankPlan& rank, const TileSizes& region) {
  double extent = 1;
  for (int term = 0; term < rank.terms; ++term) {
    extent += rank.coefficient[term] * (region[rank.dimension[term]] - 1);
  }
  return std::min(extent, rank.full_extent);
}

struct TouchedRows {
  double rows = 1, words = 1;
};

TouchedRows touched(const TensorPlan& tensor, const TileSizes& region, double row_bytes, double element_bytes) {
  TouchedRows result;
  double stride = element_bytes, span = element_bytes;
  for (int r = tensor.ranks - 1; r >= 0; --r) {
    const double extent = extent_of(tensor.rank[r], region);
    result.words *= extent;
    if (stride < row_bytes) {
      span += (extent - 1) * stride;
    } else {
      result.rows *= extent;
    }
    stride *= tensor.rank[r].full_extent;
  }
  // A span begins anywhere in its first row.
  result.rows *= 1 + (span - element_bytes) / row_bytes;
  return result;
}

}  // namespace

std::optional<DramRows> usual_rows(std::string_view component) {
  for (const UsualRows& own : usual_modules) {
    if (own.component == component) return own.rows;
  }
  return std::nullopt;
}

double rows_opened(const EvaluationPlan& plan, const FlatNest& nest, int tensor_index, int child, const TileSizes& tile,
                   const DramRows& rows, double element_bytes, double words) {
  const TensorPlan& tensor = plan.tensor[tensor_index];
  const double row_bytes = static_cast<double>(rows.row_bytes) * rows.channels;
  TileSizes region = tile;
  TouchedRows best = touched(tensor, region, row_bytes, element_bytes);
  bool moved = false;  // a loop in time has brought another tile
  for (int l = nest.first[child] - 1; l >= 0; --l) {
    const FlatLoop& loop = nest.loop[l];
    const bool matters = (tensor.dimensions >> loop.dimension & 1) != 0;
    if (!matters) {
      if (moved && !loop.spatial) break;  // the same words again, from closed rows
      continue;
    }
    if (!loop.spatial) {
      if (best.rows > rows.banks) break;  // the first rows of a turn are closed when the next one comes
      moved = true;
    }
    double& size = region[loop.dimension];
    size = std::min(size * loop.bound, plan.size[loop.dimension]);
    best = touched(tensor, region, row_bytes, element_bytes);
  }
  return words / best.words * best.rows * rows.channels;
}

double cycles_with_rows(const DramRows& rows, double opened, double moving_cycles, double clock_hz) {
  const double in_turn = opened / rows.channels;  // those of one channel
  const double cycle_ns = 1e9 / clock_hz;
  const double switching = in_turn * rows.switch_ns / cycle_ns;
  const double banks = rows.banks;
  return std::max({moving_cycles, (switching + moving_cycles) / banks, in_turn * rows.gap_ns / cycle_ns}) /
         (1 - rows.refresh_share);
}

}  // namespace foretoken
