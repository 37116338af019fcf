// A GEMM over several equal systolic arrays: the three partitions of SCALE-Sim v3 (arXiv:2504.15377, section on
// multi-core), their cycles and the words that each core holds.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "accelerator/systolic/array.h"

namespace foretoken {

// Cores form a grid. spatial: the array's rows over the grid's rows, columns over columns. The other two split the
// streamed dimension over the grid's rows and one spatial one over its columns; partial sums then need adding up.
enum class PartitionKind { spatial, spatiotemporal_columns, spatiotemporal_rows };

inline constexpr std::array partition_kinds = {PartitionKind::spatial, PartitionKind::spatiotemporal_columns,
                                               PartitionKind::spatiotemporal_rows};

std::string_view partition_name(PartitionKind kind);  // spatial, spatiotemporal-1, spatiotemporal-2 as in the paper

struct Partition {
  PartitionKind kind = PartitionKind::spatial;
  int64_t grid_rows = 1;
  int64_t grid_columns = 1;
};

struct PartitionedGemm {
  Partition partition;
  int64_t cycles = 0;          // of the core with the largest share, counted as SystolicCompute::cycles
  int64_t words_per_core = 0;  // of both operands and the outputs, in the largest share
};

PartitionedGemm partitioned_gemm(const SystolicArray& core, const GemmSize& gemm, const Partition& partition);

// The fewest cycles over all grids of `cores` and all kinds; of equal ones the fewest words, then the first in order.
PartitionedGemm best_partition(const SystolicArray& core, const GemmSize& gemm, int64_t cores);

// The same over all kinds on one grid.
PartitionedGemm best_partition_on_grid(const SystolicArray& core, const GemmSize& gemm, int64_t grid_rows,
                                       int64_t grid_columns);

}  // namespace foretoken
