#include "accelerator/systolic/weight_fed.h"

#include <algorithm>

#include "accelerator/systolic/array.h"
#include "base/error.h"

namespace foretoken {
namespace {

double weight_tile_cells(const SystolicChip& chip) {
  return static_cast<double>(chip.array_rows.value * chip.array_columns.value);
}

// Cycles of one tile, apart by what they are spent on.
struct TileCycles {
  double active = 0;
  double shift = 0;
  double stall = 0;
  double non_matrix = 0;
  bool waits = false;

  double total() const { return active + shift + stall + non_matrix; }
};

TileCycles tile_cycles(const SystolicChip& chip, const WeightFedPart& part) {
  const double load = weight_tile_cells(chip) * chip.matrix_word_bytes.value / chip.bytes_per_cycle();
  const double share = chip.non_matrix_share->value;
  TileCycles tile{.active = part.rows * part.cycles_per_row};
  const auto shift = static_cast<double>(chip.array_rows.value);
  tile.waits = tile.active / (1 - share) < load;
  // A tile that had to be waited for shifts in with nothing beside it.
  tile.shift = tile.waits ? shift : std::max(0.0, shift - tile.active);
  const double total = std::max(load, (tile.active + tile.shift) / (1 - share));
  tile.non_matrix = share * total;
  tile.stall = std::max(0.0, total - tile.active - tile.shift - tile.non_matrix);
  return tile;
}

}  // namespace

WeightFedRun run_weight_fed(const SystolicChip& chip, std::span<const WeightFedPart> parts) {
  ensure(chip.non_matrix_share.has_value(), "a chip fed with weights has a share of cycles without matrix products");
  WeightFedRun run;
  double macs = 0;
  double waiting_cycles = 0;
  double useful_cycles = 0;
  TileCycles sum;
  for (const WeightFedPart& part : parts) {
    const double tiles = part.weights / (weight_tile_cells(chip) * part.cell_share);
    const TileCycles tile = tile_cycles(chip, part);
    sum.active += tiles * tile.active;
    sum.shift += tiles * tile.shift;
    sum.stall += tiles * tile.stall;
    sum.non_matrix += tiles * tile.non_matrix;
    useful_cycles += tiles * tile.active * part.cell_share;
    if (tile.waits) waiting_cycles += tiles * tile.total();
    macs += part.weights * part.rows;
  }
  run.cycles = sum.total();
  ensure(run.cycles > 0, "parts have weights and rows");
  run.time = Seconds(run.cycles / chip.clock.value.value());
  run.rate = Flops(2 * macs) / run.time;
  run.weight_bound = waiting_cycles > run.cycles / 2;
  run.shares = {.active = sum.active / run.cycles,
                .useful = useful_cycles / run.cycles,
                .weight_stall = sum.stall / run.cycles,
                .weight_shift = sum.shift / run.cycles,
                .non_matrix = sum.non_matrix / run.cycles};
  return run;
}

int64_t weight_tiles(const SystolicChip& chip, int64_t rows, int64_t columns) {
  return ceil_quotient(rows, chip.array_rows.value) * ceil_quotient(columns, chip.array_columns.value);
}

}  // namespace foretoken
