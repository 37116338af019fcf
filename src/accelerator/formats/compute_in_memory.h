// An array of memory cells that multiplies where its weights lie, as levels of an architecture.
//
// Inputs drive the rows a few bits at a time, every column adds what its cells let through, and a converter reads the
// sum; weights wider than a cell take several columns. The array becomes drivers (inputs), columns (outputs, with the
// converters' energy for each sum), cells (weights) and multipliers that take as many cycles as all steps do.
#pragma once

#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/formats/level_tensors.h"
#include "base/json.h"

namespace foretoken {

inline constexpr Range<double> operation_cycle_bounds{.least = 1e-9, .most = 1e12};  // of compute levels

struct CellArrayLevel {
  AcceleratorLevel level;
  LevelTensors tensors;
  int64_t across = 1, down = 1;  // in one of the level before
  bool has_energy = true;        // else the library knows converters
};

// Outermost first. InputError for fields that nobody knows, sizes that hold no weight and times beyond the bounds.
std::vector<CellArrayLevel> compute_in_memory_levels(const JsonView& view, double clock_hz);

}  // namespace foretoken
