// Against memory that others printed; see data/training/README.md of the measurements.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/csv.h"
#include "compose/serving_engine.h"
#include "hardware/catalogue.h"
#include "training/memory/training_memory.h"
#include "training/runs/training_case.h"
#include "training/training_stack.h"

namespace foretoken::published_memory_test {

// A GPT of matrices alone, or with its norms: the paper's formulas leave out biases, embedding and head, and count
// norms among the activations only.
Model paper_gpt(const CsvReader& csv, int norms) {
  Model model{.name = std::string(csv.cell(csv.column("model"))),
              .hidden = csv.integer(csv.column("hidden")),
              .vocabulary = csv.integer(csv.column("vocab"))};
  const int64_t heads = csv.integer(csv.column("heads"));
  const Layer layer{.mixer = Attention{.heads = heads, .kv_heads = heads, .head_dim = model.hidden / heads},
                    .feed_forward = Mlp{.width = 4 * model.hidden, .gated = false},
                    .norms = norms};
  model.layers.assign(static_cast<size_t>(csv.integer(csv.column("layers"))), layer);
  return model;
}

TEST(PublishedMemoryNeedsData, of_the_activation_recomputation_paper_is_met) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  CsvReader csv(std::filesystem::path(data) / "training/memory.csv");
  const TrainingFormats formats{.saved = {.hidden_masks = true, .score_masks = true, .flash_attention = false}};
  int exact = 0, read_off = 0;
  while (csv.next()) {
    TrainingPlan plan{.parallel = {.tensor = csv.integer(csv.column("tp")), .pipeline = csv.integer(csv.column("pp"))},
                      .micro_batch = csv.integer(csv.column("micro_batch")),
                      .virtual_stages = csv.integer(csv.column("vpp"))};
    if (plan.virtual_stages > 1) plan.schedule = "interleaved";
    plan.global_batch = 8 * plan.parallel.pipeline * plan.micro_batch;
    const auto first_stage = [&](int norms) {
      ModelParts parts = training_parts(paper_gpt(csv, norms), csv.integer(csv.column("seq")), plan, formats);
      parts.embedding = parts.head = {};
      return plan_memory(parts, plan, formats, {}).stages.front();
    };
    const double value = csv.number(csv.column("value"));
    const std::string_view quantity = csv.cell(csv.column("quantity"));
    if (quantity == "params+grads+optimizer") {
      EXPECT_DOUBLE_EQ(first_stage(0).states() / gibibytes(1), value);
      ++exact;
      continue;
    }
    const Bytes baseline = first_stage(2).activations;
    plan.parallel.sequence = csv.cell(csv.column("sp")) == "1";
    plan.recompute = *recompute_from_name(csv.cell(csv.column("recompute")));
    const Bytes activations = first_stage(2).activations;
    if (quantity == "activations stage 0") {
      EXPECT_DOUBLE_EQ(activations / gibibytes(1), value);
      ++exact;
    } else {
      // Read off the bars of figure 7: all values there are multiples of one step.
      constexpr double step_of_the_figure = 0.178;
      EXPECT_NEAR(100 * (activations / baseline), value, step_of_the_figure) << csv.row();
      ++read_off;
    }
  }
  EXPECT_EQ(exact, 5);
  EXPECT_EQ(read_off, 9);
}

// All of them ran. Where a source does not say what was recomputed, as little as makes a run fit is assumed.
TEST(PublishedMemoryNeedsData, of_fewer_than_two_percent_of_published_runs_is_called_too_much) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const std::filesystem::path shipped = std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data";
  const HardwareCatalogue hardware(shipped / "hardware");
  TrainingCaseLibrary library(TrainingStackCatalogue(shipped / "training/stacks").all(),
                              read_run_clusters(shipped / "training/clusters.json"), hardware,
                              [](const Cluster& cluster) {
                                return std::make_unique<MachineModels>(cluster, KernelPredictor(cluster.node.device),
                                                                       std::nullopt, std::nullopt);
                              });
  TrainingRowReader reader(std::filesystem::path(data) / "training/runs.csv.gz");
  int runs = 0;
  std::vector<std::string> too_large;
  while (reader.next()) {
    std::string why;
    std::optional<TrainingCase> run = library.find(reader.read(), "", why);
    if (!run) continue;
    ++runs;
    const TrainingQuestion asked = library.question_of(*run);
    const ModelParts parts = training_parts(asked.job.model, asked.job.sequence_length, asked.plan, asked.formats);
    const Bytes need = plan_memory(parts, asked.plan, asked.formats, asked.overheads).most().total();
    if (!fits(need, *training_capacity(run->machine->device()))) too_large.push_back(run->row.id);
  }
  EXPECT_GT(runs, 1000);
  EXPECT_LT(static_cast<double>(too_large.size()), 0.02 * runs) << testing::PrintToString(too_large);
  RecordProperty("runs", runs);
  RecordProperty("too_large", testing::PrintToString(too_large));
}

}  // namespace foretoken::published_memory_test
