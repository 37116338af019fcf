// Measurements of NeuSight and LLMCompass that no fit has seen, against the calibrations that ship. The files are not
// part of the project: FORETOKEN_DATA names the folder that holds them.
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "kernel/fit/fit_campaign.h"
#include "kernel/learned.h"
#include "kernel/validate.h"
#include "library/library.h"
#include "validate/steps/validate_steps.h"

namespace foretoken::neusight_test {

namespace fs = std::filesystem;

class ForeignOperatorsTestNeedsData : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    data = folder;
  }
  KernelPredictor predictor(const Device& device, Caches caches = Caches::benchmark) const {
    return KernelPredictor(
        device, {},
        std::make_shared<LearnedKernels>(device, calibrations, caches, swept_devices(device, hardware, calibrations)),
        Tier::best, caches, read_error_correlations(FORETOKEN_SOURCE_DIR "/data/kernels/error_correlations.json"));
  }
  PredictorMaker maker() const {
    return [this](const Device& device, Caches /*caches*/) { return predictor(device); };
  }

  fs::path data;
  const fs::path calibrations = FORETOKEN_SOURCE_DIR "/data/kernels/calibrations";
  const HardwareCatalogue hardware{FORETOKEN_SOURCE_DIR "/data/hardware"};
};

// NeuSight's own errors on the nodes of its traced models on V100, by class (its artifact, summarized): 13 bmm, 4
// linear, 19 element-wise, 22 softmax, 26 norm. Linear layers are not below: nodes of one shape differ by up to 10%
// within a trace, and all are slower than in the kernel benchmark that calibrates.
TEST_F(ForeignOperatorsTestNeedsData, nodes_of_traced_models_on_v100_are_closer_than_neusights_by_class) {
  const Validation validation = validate_kernels(
      {.data = data / "neusight" / "end_to_end_ops.csv.gz", .devices = {"v100_pcie"}, .group_by = "op"}, hardware,
      maker());
  std::map<std::string, double> weighted, rows;
  for (const ValidationGroup& group : validation.groups) {
    const bool own =
        group.name == "BMM" || group.name == "Linear" || group.name == "VECsoftmax" || group.name == "VECln";
    const std::string name = own ? group.name : "elementwise";
    weighted[name] += group.errors.mape * static_cast<double>(group.errors.n);
    rows[name] += static_cast<double>(group.errors.n);
  }
  const std::map<std::string, double> limits = {
      {"BMM", 10}, {"Linear", 7}, {"elementwise", 19}, {"VECsoftmax", 22}, {"VECln", 26}};
  for (const auto& [name, limit] : limits) {
    ASSERT_GT(rows[name], 5) << name;
    EXPECT_LT(weighted[name] / rows[name], limit) << name;
  }
}

// NeuSight's own errors: 8.9% over NVIDIA's GPUs, one at a time and unfused; 10.8% and 15.6% on AMD's, inference and
// training. No fit of a kernel has seen these rows.
TEST_F(ForeignOperatorsTestNeedsData, whole_models_are_closer_than_neusights_on_nvidia_and_on_amd) {
  std::map<std::string, std::vector<PredictedRow>> rows;
  validate_steps({.data = data / "neusight" / "end_to_end.csv", .stacks = {"hf-eager-math"}},
                 Library(FORETOKEN_SOURCE_DIR "/data"), [&](const ScoredStep& step) {
                   const bool trains = step.predicted->request.phase == StepPhase::train;
                   const std::string kind =
                       step.device.starts_with("AMD") ? trains ? "AMD training" : "AMD inference" : "NVIDIA";
                   rows[kind].push_back(in_milliseconds(step.measured_ms, step.predicted->seconds));
                 });
  const std::map<std::string, double> limits = {{"NVIDIA", 7.5}, {"AMD inference", 10.8}, {"AMD training", 15.6}};
  for (const auto& [kind, limit] : limits) {
    ASSERT_GT(rows[kind].size(), 5u) << kind;
    EXPECT_LT(summarize_errors(rows[kind]).mape, limit) << kind;
  }
}

// The aim is 8% on the A100 with four points of each operator.
TEST_F(ForeignOperatorsTestNeedsData, four_points_of_each_operator_predict_the_others_of_llmcompass_within_8_percent) {
  const CampaignFit fit =
      fit_campaign({.data = data / "llmcompass" / "operators.csv", .devices = {"a100_sxm"}}, hardware, maker(), 4);
  ASSERT_EQ(fit.entries.size(), 4u);
  EXPECT_GT(fit.overall.n, 35u);
  EXPECT_LT(fit.overall.mape, 8);
  EXPECT_GE(fit.overall.coverage90, 85);
  for (const CampaignFit::Entry& entry : fit.entries) EXPECT_LT(entry.errors.mape, 14) << entry.operation;
}

}  // namespace foretoken::neusight_test
