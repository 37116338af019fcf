#include "accelerator/systolic/partition.h"

#include <gtest/gtest.h>

#include "accelerator/systolic/compute.h"
#include "base/error.h"

namespace foretoken::partition_test {

TEST(Partition, one_core_of_any_kind_is_the_array_alone) {
  const GemmSize gemm{.m = 300, .n = 200, .k = 100};
  for (const Dataflow dataflow : dataflows) {
    const SystolicArray core{.rows = 16, .columns = 8, .dataflow = dataflow};
    for (const PartitionKind kind : partition_kinds) {
      const PartitionedGemm one = partitioned_gemm(core, gemm, {.kind = kind});
      EXPECT_EQ(one.cycles, systolic_compute(core, gemm).cycles) << partition_name(kind);
      EXPECT_EQ(one.words_per_core, 300 * 100 + 100 * 200 + 300 * 200) << partition_name(kind);
    }
  }
}

// 2 x 8 cores of 8 x 8: rows 1000 / 2 = 500 in 63 folds, columns 1000 / 8 = 125 in 16 folds, each of 1000 + 8 + 8 + 8
// - 2.
TEST(Partition, spatial_cycles_are_those_of_the_papers_equation) {
  const SystolicArray core{.rows = 8, .columns = 8, .dataflow = Dataflow::weight_stationary};
  const GemmSize gemm{.m = 1000, .n = 1000, .k = 1000};
  const PartitionedGemm found =
      partitioned_gemm(core, gemm, {.kind = PartitionKind::spatial, .grid_rows = 2, .grid_columns = 8});
  EXPECT_EQ(found.cycles + 1, 63 * 16 * 1022);
}

TEST(Partition, the_best_is_no_slower_than_any_and_more_cores_are_no_slower) {
  const GemmSize gemm{.m = 5000, .n = 96, .k = 700};
  for (const Dataflow dataflow : dataflows) {
    const SystolicArray core{.rows = 16, .columns = 16, .dataflow = dataflow};
    int64_t before = systolic_compute(core, gemm).cycles;
    for (const int64_t cores : {2, 4, 16, 64}) {
      const PartitionedGemm best = best_partition(core, gemm, cores);
      EXPECT_EQ(best.partition.grid_rows * best.partition.grid_columns, cores);
      EXPECT_LE(best.cycles, before);
      for (const PartitionKind kind : partition_kinds) {
        EXPECT_LE(best.cycles, partitioned_gemm(core, gemm, {.kind = kind, .grid_rows = cores}).cycles);
      }
      before = best.cycles;
    }
  }
}

TEST(Partition, no_cores_and_too_many_are_refused) {
  EXPECT_THROW(best_partition({}, {}, 0), InputError);
  EXPECT_THROW(best_partition({}, {}, 1 << 21), InputError);
  EXPECT_THROW(partitioned_gemm({}, {}, {.grid_rows = 0}), InputError);
}

}  // namespace foretoken::partition_test
