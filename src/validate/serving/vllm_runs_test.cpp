// Two runs of a real vLLM 0.19.0, request by request: serving/vllm_runs of the measured data.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "library/library.h"
#include "serving/test_support.h"
#include "validate/serving/validate_run.h"

namespace foretoken::vllm_runs_test {

namespace fs = std::filesystem;

struct Card {
  const char* folder;
  const char* device;
  int64_t preemptions;
};
constexpr Card rtx_4090{"RTX4090_Llama-3.1-8B", "rtx_4090", 195};
constexpr Card rtx_pro_6000{"RTXPRO6000_Llama-3.1-8B", "rtx_pro_6000_server", 0};

class VllmRunsNeedsData : public testing::TestWithParam<Card> {
 protected:
  void SetUp() override {
    const auto data = measured_data();
    if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    folder_ = *data / "serving/vllm_runs" / GetParam().folder;
  }

  static RunValidation validate(const RunValidationRequest& request) {
    const Library library(FORETOKEN_SOURCE_DIR "/data");
    RunValidation found = validate_run(request, library, serving_facts(library));
    for (const std::string& note : found.errors.notes) RecordProperty("note", note);
    return found;
  }

  static const ErrorSummary& errors_of(const RunValidation& run, std::string_view metric) {
    const auto& groups = run.errors.groups;
    return std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.name == metric; })->errors;
  }

  fs::path folder_;
};

TEST_P(VllmRunsNeedsData, measured_operators_give_the_measured_requests) {
  const RunValidation found = validate({.folder = folder_, .op_tables = folder_ / "op_profile"});
  EXPECT_FALSE(found.errors.has_intervals);
  EXPECT_LT(errors_of(found, "e2e_ms").mape, 2.2);
  EXPECT_LT(errors_of(found, "ttft_ms").mape, 8);
  EXPECT_LT(std::abs(found.error_of_means.at("e2e_ms")), 2);
  EXPECT_LT(std::abs(found.error_of_means.at("tpot_ms")), 2);
  EXPECT_NEAR(static_cast<double>(found.preemptions), static_cast<double>(GetParam().preemptions),
              0.1 * static_cast<double>(GetParam().preemptions));
}

// No table, and KV blocks from first principles.
TEST_P(VllmRunsNeedsData, our_own_kernels_and_blocks_are_close_and_their_intervals_hold_most_requests) {
  const RunValidation found = validate({.folder = folder_, .op_tables = {}, .own_blocks = true});
  EXPECT_LT(std::abs(found.error_of_means.at("tpot_ms")), 10);
  EXPECT_LT(std::abs(found.error_of_means.at("e2e_ms")), 10);
  EXPECT_LT(std::abs(found.throughput_error), 5);
  EXPECT_TRUE(found.errors.has_intervals);
  EXPECT_GT(found.errors.overall.coverage90, 85);
}

INSTANTIATE_TEST_SUITE_P(cards, VllmRunsNeedsData, testing::Values(rtx_4090, rtx_pro_6000),
                         [](const auto& card) { return std::string(card.param.device); });

}  // namespace foretoken::vllm_runs_test
