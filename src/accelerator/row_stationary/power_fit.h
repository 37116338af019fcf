// The two constants of a row-stationary chip that no paper prints: energy of an effective MAC and idle power.
#pragma once

#include <span>

#include "accelerator/row_stationary/chip.h"
#include "accelerator/row_stationary/published_layers.h"

namespace foretoken {

struct RowStationaryPower {
  Joules effective_mac_energy;
  Watts idle_power;
};

// Least squares of the relative error of power over `rows` (two or more that differ in their rate of effective MACs),
// with the energy of the buffer as the chip states it.
RowStationaryPower fit_row_stationary_power(const RowStationaryChip& chip, std::span<const PublishedConvLayer> rows);

}  // namespace foretoken
