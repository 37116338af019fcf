// A chip whose weights come tile by tile from DRAM into its array, as TPU v1: where its cycles go.
//
// A tile fills the array once. Its bytes cross from DRAM while the tile before is at work, then shift in (one cycle per
// row of the array, unless they did so beside a long enough tile before), then every row of activations takes a cycle.
// A share of all cycles goes to what is not a matrix product; DRAM goes on meanwhile.
#pragma once

#include <cstdint>
#include <span>

#include "accelerator/systolic/chip.h"

namespace foretoken {

struct WeightFedPart {
  double weights = 0;
  double rows = 0;            // of activations that meet each weight: batch, times positions of a convolution
  double cell_share = 1;      // of the array's cells that hold a weight
  double cycles_per_row = 1;  // 2 where one operand has twice the array's width
};

// Shares of all cycles; `active`, `weight_stall`, `weight_shift` and `non_matrix` add up to 1.
struct WeightFedShares {
  double active = 0;
  double useful = 0;  // of active: cells with a weight
  double weight_stall = 0;
  double weight_shift = 0;
  double non_matrix = 0;
};

struct WeightFedRun {
  double cycles = 0;
  Seconds time;
  FlopsPerSecond rate;        // a multiply-add counts two
  bool weight_bound = false;  // most cycles pass in parts that wait for weights
  WeightFedShares shares;
};

// All parts, one after the other; the chip must have a non_matrix_share.
WeightFedRun run_weight_fed(const SystolicChip& chip, std::span<const WeightFedPart> parts);

// Tiles that a weight matrix needs.
int64_t weight_tiles(const SystolicChip& chip, int64_t rows, int64_t columns);

}  // namespace foretoken
