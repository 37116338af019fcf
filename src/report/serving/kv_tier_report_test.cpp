#include "report/serving/kv_tier_report.h"

#include <gtest/gtest.h>

namespace foretoken::kv_tier_report_test {

KvTierUsage two_tiers() {
  KvTierUsage usage;
  usage.kv_bytes_per_token = 1000;
  usage.tiers = {{.kind = "host", .hit_tokens = 300, .read_tokens = 400, .written_tokens = 2000, .most_tokens = 900},
                 {.kind = "nvme", .hit_tokens = 100, .read_tokens = 100, .written_tokens = 2000, .most_tokens = 2000}};
  usage.waiting_requests = 4;
  usage.requests_waited = 8'000'000'000;  // 8 ms
  usage.waiting_steps = 2;
  usage.waited = 3'000'000'000;
  return usage;
}

TEST(KvTierReport, shares_of_gpu_and_tiers_add_up_to_the_hits_of_the_run) {
  const Json json = kv_tiers_json(two_tiers(), 1000, 650);
  int64_t found = json.find("gpu_hit_tokens")->integer();
  for (const Json& tier : json.find("tiers")->items()) found += tier.find("hit_tokens")->integer();
  EXPECT_EQ(found, 650);
  EXPECT_DOUBLE_EQ(json.find("tiers")->items().front().find("hit_share")->number(), 0.3);
  EXPECT_DOUBLE_EQ(json.find("tiers")->items().front().find("read_bytes")->number(), 400e3);
  EXPECT_DOUBLE_EQ(json.find("requests_waited_ms")->number(), 8);
  EXPECT_DOUBLE_EQ(json.find("steps_held_up_ms")->number(), 3);
}

TEST(KvTierReport, the_table_has_a_line_for_the_gpu_and_each_tier) {
  const std::string text = kv_tiers_text(two_tiers(), 1000, 650);
  for (const char* part : {"GPU", "25.0%", "host", "30.0%", "400 kB", "nvme", "10.0%", "4   requests, 2.00 ms each",
                           "2   steps, 3.00 ms together"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("Swapped"), std::string::npos) << "nothing was";
}

TEST(KvTierReport, a_run_without_prompts_has_no_shares) {
  const Json json = kv_tiers_json(two_tiers(), 0, 400);
  EXPECT_EQ(json.find("tiers")->items().front().find("hit_share")->number(), 0);
}

}  // namespace foretoken::kv_tier_report_test
