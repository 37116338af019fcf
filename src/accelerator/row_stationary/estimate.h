// Time, traffic and energy of a convolution on a row-stationary chip, from the chip's structure alone: what an array
// computes, what its networks can feed it, how each pass fills and drains, and what crosses the link to DRAM.
#pragma once

#include <optional>
#include <string_view>

#include "accelerator/row_stationary/mapping.h"
#include "base/units.h"

namespace foretoken {

enum class RowStationaryBound { mac, array_feeding, dram };
std::string_view row_stationary_bound_name(RowStationaryBound bound);

// Core cycles of all passes.
struct RowStationaryCycles {
  double mac = 0;   // PEs multiply
  double feed = 0;  // PEs wait for inputs or partial sums within a pass
  double ramp = 0;  // filters and first windows come in, last partial sums go out: nothing is computed
  double total() const { return mac + feed + ramp; }
};

struct RowStationaryTraffic {
  Bytes ifmap, filter, psum;  // for DRAM, psum is the finished output
  Bytes total() const { return ifmap + filter + psum; }
};

struct RowStationaryEnergy {
  Joules processing_elements, buffer, idle;
  Joules total() const { return processing_elements + buffer + idle; }
};

struct RowStationaryResult {
  RowStationaryMapping mapping;
  int64_t active_pes = 0;
  double passes = 0;
  RowStationaryCycles cycles;
  Seconds processing;  // if DRAM traffic were hidden altogether: the chip's "processing latency"
  Seconds total;       // the array stands still while features are loaded and stored
  RowStationaryTraffic buffer;
  RowStationaryTraffic dram;  // run-length coded
  RowStationaryEnergy energy;
  RowStationaryBound bound = RowStationaryBound::mac;

  Watts power() const { return energy.total() / total; }
};

// Filters of several rows lie as the published rule says. Of filters of one row (pointwise layers, products) none is
// published, and least DRAM traffic would give up channels of a pass until the array starves: the fastest one that
// fits.
RowStationaryMapping choose_row_stationary_mapping(const RowStationaryChip& chip, const ConvLayer& layer);

// With `mapping`, InputError unless it fits; without, by choose_row_stationary_mapping().
RowStationaryResult estimate_row_stationary(const RowStationaryChip& chip, const ConvLayer& layer,
                                            const std::optional<RowStationaryMapping>& mapping = std::nullopt);

}  // namespace foretoken
