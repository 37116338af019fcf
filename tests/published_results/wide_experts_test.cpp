// Published deployments of wide expert parallelism, and DeepEP's kernels in a published trace. The files are not part
// of the project: FORETOKEN_DATA names the folder that holds them. Nothing was fitted to either.
#include <cstdlib>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "compose/profile/trace.h"
#include "compose/step_spec.h"
#include "compose/two_batch.h"
#include "library/library.h"
#include "network/calibration/expert_kernels.h"

namespace foretoken::wide_experts_test {

class WideExpertsTestNeedsData : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    data = std::filesystem::path(folder) / "deepseek";
  }
  std::map<std::string, double> published() const {
    std::map<std::string, double> values;
    CsvReader csv(data / "wide_ep.csv");
    const size_t name = csv.column("deployment"), value = csv.column("value");
    while (csv.next()) values[std::string(csv.cell(name))] = csv.number(value, {.least = 0, .most = 1e9});
    return values;
  }
  // Tokens per second of a node, 32 copies of experts, two batches; balancedness as LMSYS found it with copies.
  double node_rate(int64_t ranks, const StepRequest& request, const std::string& balancedness) const {
    const StepSpec spec{
        .model = {.model = "DeepSeek-V3", .expert_popularity = "balancedness:" + balancedness, .redundant_experts = 32},
        .device = "h100_sxm",
        .request = request,
        .plan = {.data = ranks, .expert = ranks},
        .stack = "sglang",
        .two_batch_overlap = true,
        .placement = {.cluster = "h100_ib_rail"}};
    const StepEstimate step = predict_step(library, spec).step;
    EXPECT_TRUE(step.two_batches);
    return step.tokens / step.seconds.value / static_cast<double>(ranks) * 8;
  }

  std::filesystem::path data;
  const Library library{FORETOKEN_SOURCE_DIR "/data"};
};

TEST_F(WideExpertsTestNeedsData, sglang_on_96_h100_with_two_batches) {
  std::map<std::string, double> rates = published();
  EXPECT_NEAR(node_rate(32, {.phase = StepPhase::prefill, .batch = 8, .input_len = 2000}, "0.8") /
                  rates.at("sglang_2025_05_prefill"),
              1, 0.25);
  EXPECT_NEAR(node_rate(72, {.phase = StepPhase::decode, .batch = 256, .context_len = 2050}, "0.81") /
                  rates.at("sglang_2025_05_decode"),
              1, 0.25);
}

// 4,096 tokens of each of 64 ranks on H800, beside multiplies. Kernels that wait for other ranks are apart.
TEST_F(WideExpertsTestNeedsData, dispatch_and_combine_of_a_training_trace) {
  const ProfiledStep trace = read_profile(data / "train_trace.json.gz");
  const HardwareCatalogue hardware = library.hardware();
  const auto predictor = library.collectives(hardware.device("h800_sxm"), hardware.node("hgx_h800"));
  ASSERT_TRUE(predictor.has_value());
  for (const auto& [direction, name] : {std::pair(ExpertDirection::dispatch, "internode::dispatch<"),
                                        std::pair(ExpertDirection::combine, "internode::combine<")}) {
    double us = 0, calls = 0;
    for (const ProfiledKernel& kernel : trace.kernels) {
      if (kernel.name.find(name) == std::string::npos) continue;
      us += kernel.us;
      calls += 1;
    }
    ASSERT_EQ(calls, 8) << name;
    const auto asked = expert_calls(*find_expert_kernel("deepep-normal"), direction, "fp8", 64, 8,
                                    {.tokens = 4096, .hidden = 7168, .top_k = 8, .experts = 256, .processors = 20});
    const auto alone = predictor->estimate(asked.front());
    ASSERT_TRUE(alone.has_value());
    EXPECT_NEAR(alone->seconds.value * slowdown_beside_multiplies / (1e-6 * us / calls), 1, 0.3) << name;
    EXPECT_LT(alone->seconds.low, 1e-6 * us / calls) << name;
    EXPECT_GT(alone->seconds.high, 1e-6 * us / calls) << name;
  }
}

}  // namespace foretoken::wide_experts_test
