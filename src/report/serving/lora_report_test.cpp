#include "report/serving/lora_report.h"

#include <gtest/gtest.h>

namespace foretoken::lora_report_test {

TEST(LoraReport, text_and_json_tell_what_the_adapters_took) {
  LoraCounts counts;
  counts.step_ran({.repeats = 3, .adapters = 4});
  counts.step_ran({.adapters = 8, .adapter_loads = {.from_host = 5, .from_disk = 2, .time = 250'000'000'000}});
  const LoraReport report{.settings = {.max_loras = 8, .max_lora_rank = 32},
                          .slot_bytes = Bytes(168e6),
                          .adapter_bytes = Bytes(84e6),
                          .loading = {.from_host = Seconds(5e-3), .from_disk = Seconds(42e-3)},
                          .counts = counts,
                          .duration_s = 1};
  const std::string text = lora_text(report);
  for (const char* part : {"of rank 32, 168 MB each", "5.00   at most 8", "5.00 ms each", "25.0%"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const Json json = lora_json(report);
  EXPECT_EQ(json.find("mean_adapters")->number(), 5);
  EXPECT_EQ(json.find("loads_from_disk")->integer(), 2);
  EXPECT_EQ(json.find("loading_s")->number(), 0.25);
}

}  // namespace foretoken::lora_report_test
