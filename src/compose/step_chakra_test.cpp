#include "compose/step_chakra.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <tuple>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "network/rank_places.h"
#include "network/replay/chakra_workload.h"
#include "network/replay/replay.h"

namespace foretoken::step_chakra_test {

namespace fs = std::filesystem;

class StepChakra : public testing::Test {
 protected:
  StepChakra()
      : folder_(fs::path(testing::TempDir()) / ("foretoken_step_chakra_" + std::to_string(getpid()))),
        serving_(StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack("vllm")),
        training_(StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack("fused")) {
    fs::create_directories(folder_);
  }
  ~StepChakra() override { fs::remove_all(folder_); }

  StepEstimate estimate(const std::string& model, const StepRequest& request, const ParallelPlan& plan) const {
    const KernelPredictor h100(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm"));
    return estimate_step(ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(model), request, plan, h100,
                         stack_for(request));
  }

  const Stack& stack_for(const StepRequest& request) const {
    return request.phase == StepPhase::train ? training_ : serving_;
  }

  ReplayWorkload exported(const StepEstimate& step) const {
    for (int64_t rank = 0; rank < rank_count(step.plan); ++rank) {
      write_file(chakra_path(prefix(), rank), chakra_text(step_chakra(step, stack_for(step.request), 1, rank)));
    }
    return read_chakra_workload(prefix(), {.ranks = rank_count(step.plan)});
  }

  // Collectives take what the step's estimate says.
  static double replayed_seconds(const StepEstimate& step, const ReplayWorkload& workload) {
    std::map<std::tuple<CollectiveKind, int64_t, double>, double> times;
    for (const StageEstimate& stage : step.stages) {
      for (const TimedLaunch& timed : stage.launches) {
        const auto* shape = std::get_if<CollectiveShape>(&timed.launch.shape);
        if (shape == nullptr) continue;
        times[{shape->kind, shape->ranks, shape->bytes}] =
            timed.seconds.value / static_cast<double>(timed.launch.count);
      }
    }
    const auto network = undisturbed_network([&](const NetworkCall& call) {
      return Seconds(times.at({call.kind, static_cast<int64_t>(call.ranks.size()), call.bytes}));
    });
    return to_seconds(replay(workload, *network).makespan).value();
  }

  std::string prefix() const { return (folder_ / "step").string(); }

  fs::path folder_;
  Stack serving_, training_;
};

TEST_F(StepChakra, a_replayed_step_takes_as_long_as_its_estimate) {
  const StepRequest decode{.phase = StepPhase::decode, .batch = 8, .context_len = 512};
  for (const ParallelPlan& plan : {ParallelPlan{}, ParallelPlan{.tensor = 4}, ParallelPlan{.tensor = 2, .data = 2}}) {
    const StepEstimate step = estimate("Llama-3.1-8B", decode, plan);
    EXPECT_NEAR(replayed_seconds(step, exported(step)) / step.seconds.value, 1, 1e-6);
  }
}

TEST_F(StepChakra, a_stage_starts_when_the_one_before_has_sent) {
  const StepEstimate step = estimate("Llama-3.1-8B", {.phase = StepPhase::decode, .batch = 8, .context_len = 512},
                                     {.tensor = 2, .pipeline = 2});
  const double replayed = replayed_seconds(step, exported(step));
  EXPECT_LT(replayed, step.seconds.value);
  const DispatchTime& first = step.stages[0].time;
  EXPECT_GT(replayed, step.seconds.value - first.launch_gap - first.host_stall)
      << "only the end of the first stage overlaps, and its host's work on the next step";
}

// Engines number stages before replicas, training frameworks replicas before stages.
TEST_F(StepChakra, ranks_are_numbered_in_the_order_of_the_step) {
  const auto peer_of_first = [&](const StepEstimate& step) {
    const ReplayWorkload workload = exported(step);
    for (const ReplayNode& node : workload.ranks[0].nodes) {
      if (node.kind == ReplayKind::send) return int64_t{node.peer};
    }
    return int64_t{-1};
  };
  StepEstimate step = estimate("Llama-3.1-8B", {.phase = StepPhase::decode, .batch = 8, .context_len = 512},
                               {.tensor = 2, .pipeline = 2, .data = 2});
  EXPECT_EQ(peer_of_first(step), 2);
  EXPECT_GT(replayed_seconds(step, exported(step)), 0) << "all groups match";
  step.rank_order.assign(std::begin(training_rank_order), std::end(training_rank_order));
  EXPECT_EQ(peer_of_first(step), 4);
  step.rank_order = parse_rank_order("--rank-order", "pp-dp-tp");
  EXPECT_EQ(peer_of_first(step), 1);
  EXPECT_GT(replayed_seconds(step, exported(step)), 0);
}

TEST_F(StepChakra, training_sends_gradients_back_and_meets_over_replicas) {
  const StepEstimate step = estimate("Llama-3.1-8B", {.phase = StepPhase::train, .batch = 1, .input_len = 256},
                                     {.tensor = 2, .pipeline = 2, .data = 2});
  const ReplayWorkload workload = exported(step);
  int64_t sends = 0;
  for (const ReplayNode& node : workload.ranks[0].nodes) sends += node.kind == ReplayKind::send ? 1 : 0;
  EXPECT_EQ(sends, 1) << "forward only, on the first stage";
  double longest = 0, sum = 0;
  for (const StageEstimate& stage : step.stages) {
    longest = std::max(longest, stage.seconds.value);
    sum += stage.seconds.value;
  }
  const double replayed = replayed_seconds(step, workload);
  EXPECT_GE(replayed, longest);
  EXPECT_LE(replayed, sum * (1 + 1e-6)) << "the last stage's optimizer runs beside the first stage's backward pass";
}

TEST_F(StepChakra, every_kind_of_group_has_its_members_on_every_rank) {
  // Matching checks that each group's members are all there and agree.
  const StepRequest train{.phase = StepPhase::train, .batch = 1, .input_len = 256};
  for (const ParallelPlan& plan : {ParallelPlan{.tensor = 2, .data = 4, .expert = 4},
                                   ParallelPlan{.tensor = 1, .pipeline = 2, .data = 4, .expert = 2, .context = 2}}) {
    const StepEstimate step = estimate("Mixtral-8x7B-v0.1", train, plan);
    const ReplayWorkload workload = exported(step);
    EXPECT_GT(replayed_seconds(step, workload), 0);
    EXPECT_EQ(static_cast<int64_t>(workload.ranks.size()), rank_count(plan));
  }
}

}  // namespace foretoken::step_chakra_test
