#include "accelerator/systolic/partition.h"

#include <optional>

#include "accelerator/systolic/compute.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr int64_t most_cores = 1 << 20;

// The inverse of project().
GemmSize unproject(Dataflow dataflow, const SystolicProjection& shape) {
  switch (dataflow) {
    case Dataflow::output_stationary:
      return {.m = shape.rows, .n = shape.columns, .k = shape.steps};
    case Dataflow::weight_stationary:
      return {.m = shape.steps, .n = shape.columns, .k = shape.rows};
    case Dataflow::input_stationary:
      return {.m = shape.columns, .n = shape.steps, .k = shape.rows};
  }
  ensure(false, "a dataflow is one of three");
  return {};
}

SystolicProjection largest_share(const SystolicProjection& whole, const Partition& partition) {
  SystolicProjection share = whole;
  switch (partition.kind) {
    case PartitionKind::spatial:
      share.rows = ceil_quotient(whole.rows, partition.grid_rows);
      share.columns = ceil_quotient(whole.columns, partition.grid_columns);
      break;
    case PartitionKind::spatiotemporal_columns:
      share.steps = ceil_quotient(whole.steps, partition.grid_rows);
      share.columns = ceil_quotient(whole.columns, partition.grid_columns);
      break;
    case PartitionKind::spatiotemporal_rows:
      share.steps = ceil_quotient(whole.steps, partition.grid_rows);
      share.rows = ceil_quotient(whole.rows, partition.grid_columns);
      break;
  }
  return share;
}

void keep_better(std::optional<PartitionedGemm>& best, const PartitionedGemm& found) {
  const bool better = !best || found.cycles < best->cycles ||
                      (found.cycles == best->cycles && found.words_per_core < best->words_per_core);
  if (better) best = found;
}

}  // namespace

std::string_view partition_name(PartitionKind kind) {
  switch (kind) {
    case PartitionKind::spatial:
      return "spatial";
    case PartitionKind::spatiotemporal_columns:
      return "spatiotemporal-1";
    case PartitionKind::spatiotemporal_rows:
      return "spatiotemporal-2";
  }
  ensure(false, "a partition is one of three");
  return "";
}

PartitionedGemm partitioned_gemm(const SystolicArray& core, const GemmSize& gemm, const Partition& partition) {
  for (const int64_t side : {partition.grid_rows, partition.grid_columns}) {
    if (side >= 1 && side <= most_cores) continue;
    throw InputError(
        {.path = "partition.grid", .value = std::to_string(side), .expected = "1 to 1048576 cores a side"});
  }
  const SystolicProjection share = largest_share(project(core.dataflow, gemm), partition);
  return {.partition = partition,
          .cycles = systolic_compute(core, unproject(core.dataflow, share)).cycles,
          .words_per_core = share.rows * share.steps + share.columns * share.steps + share.rows * share.columns};
}

PartitionedGemm best_partition(const SystolicArray& core, const GemmSize& gemm, int64_t cores) {
  if (cores < 1 || cores > most_cores) {
    throw InputError({.path = "cores", .value = std::to_string(cores), .expected = "1 to 1048576 cores"});
  }
  std::optional<PartitionedGemm> best;
  for (const PartitionKind kind : partition_kinds) {
    for (int64_t rows = 1; rows <= cores; ++rows) {
      if (cores % rows != 0) continue;
      keep_better(best, partitioned_gemm(core, gemm, {.kind = kind, .grid_rows = rows, .grid_columns = cores / rows}));
    }
  }
  return *best;
}

PartitionedGemm best_partition_on_grid(const SystolicArray& core, const GemmSize& gemm, int64_t grid_rows,
                                       int64_t grid_columns) {
  std::optional<PartitionedGemm> best;
  for (const PartitionKind kind : partition_kinds) {
    keep_better(best,
                partitioned_gemm(core, gemm, {.kind = kind, .grid_rows = grid_rows, .grid_columns = grid_columns}));
  }
  return *best;
}

}  // namespace foretoken
