// Published training runs against the constants that ship: ceilings of the error of each source. The constants were
// fitted to these runs, so this guards against getting worse and shows nothing about runs unseen: docs/accuracy.md has
// the cross-validated figures.
#include <cstdlib>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "library/library.h"
#include "validate/training/validate_training.h"

namespace foretoken::training_test {

struct SourceCeiling {
  const char* name;
  std::vector<const char*> sources;
  const char* task;
  double mape;
};

const std::vector<SourceCeiling>& source_ceilings() {
  static const std::vector<SourceCeiling> ceilings = {
      {"A100 Megatron and MT-NLG",
       {"megatron-sc21-table1", "megatron-sc21-table2", "actrecomp-table5", "actrecomp-abstract", "mtnlg-530b"},
       "",
       3.5},
      {"vTrain single-node", {"vtrain-single-node"}, "", 7.2},
      {"vTrain multi-node", {"vtrain-multi-node"}, "", 7.9},
      {"MLPerf GPT-3 and Llama 3.1 405B",
       {"mlperf-v3.1", "mlperf-v4.0", "mlperf-v4.1", "mlperf-v5.0", "mlperf-v5.1"},
       "pretrain",
       1.5},
      {"MPT FSDP", {"mosaic-foundry"}, "", 3.3},
      {"NeMo 24.07", {"nemo-24.07"}, "", 4},  // 2.6 before packed documents of its fine-tuning were read as such
  };
  return ceilings;
}

TEST(PublishedTrainingNeedsData, runs_are_predicted_no_worse_than_when_the_constants_were_fitted) {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const HardwareCatalogue hardware = library.hardware();
  TrainingCaseLibrary cases(training_stacks_of(library).all(), run_clusters_of(library), hardware,
                            [&](const Cluster& cluster) { return machine_of(library, cluster); });
  std::map<std::string, std::vector<double>> errors;  // percent, by the name of the ceiling
  const Validation validation = validate_training(
      {.data = std::filesystem::path(folder) / "training" / "runs.csv.gz"}, cases, [&](const ScoredTraining& scored) {
        const TrainingRow& row = scored.run->row;
        for (const SourceCeiling& ceiling : source_ceilings()) {
          const bool is_source =
              std::find(ceiling.sources.begin(), ceiling.sources.end(), row.source) != ceiling.sources.end();
          if (!is_source || (*ceiling.task != '\0' && row.task != ceiling.task)) continue;
          errors[ceiling.name].push_back(100 * std::abs(scored.predicted->seconds.value / scored.measured_s - 1));
        }
      });
  for (const SourceCeiling& ceiling : source_ceilings()) {
    EXPECT_GE(errors[ceiling.name].size(), 10U) << ceiling.name;
    EXPECT_LT(mean(errors[ceiling.name]), ceiling.mape) << ceiling.name;
  }
  EXPECT_GE(validation.overall.coverage90, 85);
  EXPECT_LE(validation.overall.coverage90, 95);
  // Rows that have no time of a step are expressed and predicted; only others count as not expressible.
  size_t not_expressible = 0;
  for (const SkippedRows& skipped : validation.skipped) {
    not_expressible += skipped.why.starts_with("no time of a step") ? 0U : 1U;
  }
  const size_t rows = validation.overall.n + validation.skipped.size();
  EXPECT_LE(static_cast<double>(not_expressible), 0.02 * static_cast<double>(rows)) << rows << " rows";
}

// Nothing is fitted to these.
TEST(PublicTrainingFacts, are_mostly_inside_their_intervals) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const HardwareCatalogue hardware = library.hardware();
  TrainingCaseLibrary cases(training_stacks_of(library).all(), run_clusters_of(library), hardware,
                            [&](const Cluster& cluster) { return machine_of(library, cluster); });
  const Validation validation =
      validate_training({.data = library.directory() / "training" / "public_facts.csv"}, cases);
  EXPECT_TRUE(validation.skipped.empty());
  EXPECT_GE(validation.overall.n, 40U);
  EXPECT_LT(validation.overall.median_ape, 10);
  EXPECT_GE(validation.overall.coverage90, 80);
}

// Our own steps. Constants were taken from kernels of the shapes with 128 and 8 experts; the other two are unseen.
TEST(MeasuredTraining, steps_with_experts_on_one_gpu_are_as_close_as_documented) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const HardwareCatalogue hardware = library.hardware();
  TrainingCaseLibrary cases(training_stacks_of(library).all(), run_clusters_of(library), hardware,
                            [&](const Cluster& cluster) { return machine_of(library, cluster); });
  std::map<std::string, std::vector<double>> errors;  // percent, by model
  const Validation validation =
      validate_training({.data = library.directory() / "measured_training" / "h200_sxm_experts.csv"}, cases,
                        [&](const ScoredTraining& scored) {
                          errors[scored.run->row.model].push_back(
                              100 * std::abs(scored.predicted->seconds.value / scored.measured_s - 1));
                        });
  EXPECT_TRUE(validation.skipped.empty());
  EXPECT_EQ(validation.overall.n, 28U);
  EXPECT_EQ(validation.overall.coverage90, 100);
  for (const auto& [model, ceiling] : std::map<std::string, double>{
           {"experts-128x768", 7.5}, {"experts-64x1408", 5.5}, {"experts-40x512", 8.5}, {"experts-8x14336", 4.5}}) {
    EXPECT_LT(mean(errors[model]), ceiling) << model;
  }
}

}  // namespace foretoken::training_test
