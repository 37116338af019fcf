#include "kernel/fewshot/validate_fewshot.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace foretoken::validate_fewshot_test {

TEST(DeviceFamily, batch_sizes_of_a_gpu_are_one_family_and_model_numbers_stay) {
  EXPECT_EQ(device_family("1080ti_32"), "1080ti");
  EXPECT_EQ(device_family("titan_xp_64"), "titan_xp");
  EXPECT_EQ(device_family("gold_6240"), "gold_6240");
  EXPECT_EQ(device_family("silver_4210r"), "silver_4210r");
  EXPECT_EQ(device_family("wmt14ende/cpu_xeon"), "cpu_xeon");
}

// The smallest of the published tables, one draw: figures of all are in docs/edge_adaptation.md.
TEST(ValidateFewshotNeedsData, published_devices_left_out_are_predicted_from_ten_timings) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const ArchitectureSpace& space = architecture_space("hat");
  const LatencyTable table = read_latency_table(space, std::filesystem::path(data) / "edge" / "hat_latency.csv.gz");
  const FewshotValidation result = validate_fewshot(space, table, {.draws = 2});
  EXPECT_EQ(result.groups.size(), 6U);
  EXPECT_TRUE(result.skipped.empty());
  EXPECT_GT(result.measured.trimmed.spearman, 0.95);
  EXPECT_LT(result.measured.trimmed.mape, 8);
  EXPECT_EQ(result.sums.queries, 0U);
}

}  // namespace foretoken::validate_fewshot_test
