// Rows of published tables that are no measurements of a network: failed runs, and sums of estimates of its blocks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernel/fewshot/latency_table.h"

namespace foretoken {

// Values under a fifth of the median, by position.
std::vector<size_t> far_below_median(std::span<const double> milliseconds);

// Whether a linear model over the blocks of the space reproduces the device's latencies: they were then added up, not
// measured. Wants more rows than blocks; false where the space does not name its blocks.
bool is_sum_of_blocks(const ArchitectureSpace& space, const ArchitectureTable& architectures,
                      const DeviceLatencies& latencies);

struct UsableRows {
  std::vector<size_t> positions;  // in the device's latencies
  size_t failed = 0;              // left out: far below the median, and not explained by a sum of blocks
  bool sum_of_blocks = false;
};
UsableRows usable_rows(const ArchitectureSpace& space, const ArchitectureTable& architectures,
                       const DeviceLatencies& latencies);

}  // namespace foretoken
