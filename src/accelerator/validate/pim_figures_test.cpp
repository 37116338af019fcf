#include <gtest/gtest.h>

#include <fstream>

#include "accelerator/validate/validate_accelerator.h"

namespace foretoken::pim_figures_test {

TEST(PimFigures, a_table_of_prim_runs_is_recognised_and_grouped_by_benchmark) {
  const std::filesystem::path table = std::filesystem::path(testing::TempDir()) / "prim_runs.csv";
  std::ofstream(table)
      << "benchmark,num_dpus,data_prep_param,hw_kernel_ms,hw_cpu_to_dpu_ms,hw_dpu_to_cpu_ms,"
         "hw_dpu_to_dpu_ms\n"
         "VA,4,1000000,8,4,11,0\nSCAN-SSA,16,500000,2.5,1.5,5,0.2\nNW,4,1000,1,1,1,1\nVA,1,900000000,1,1,1,0\n";
  const Validation validation =
      validate_accelerator({.data = table, .shipped = FORETOKEN_SOURCE_DIR "/data/accelerators", .group_by = "case"});
  ASSERT_EQ(validation.groups.size(), 2u);  // nothing is known about NW, and nothing guessed
  EXPECT_EQ(validation.groups[0].name, "SCAN-SSA");
  EXPECT_EQ(validation.groups[0].errors.n, 4u);
  EXPECT_EQ(validation.groups[1].errors.n, 3u);  // VA moves nothing between DPUs, and 11 GB fit no DPU
  EXPECT_LT(validation.overall.mape, 30);
  std::filesystem::remove(table);
}

}  // namespace foretoken::pim_figures_test
