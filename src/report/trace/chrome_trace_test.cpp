#include "report/trace/chrome_trace.h"

#include <map>

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::chrome_trace_test {

struct Traced {
  StepEstimate step;
  Json trace;
};

Traced traced(const char* stack_name, const ParallelPlan& plan = {}) {
  const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.2-1B");
  const KernelPredictor predictor(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm"));
  const Stack stack = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack(stack_name);
  StepEstimate step =
      estimate_step(model, {.phase = StepPhase::decode, .batch = 8, .context_len = 512}, plan, predictor, stack);
  Json trace = chrome_trace(step, stack);
  return {std::move(step), std::move(trace)};
}

TEST(ChromeTrace, is_json_that_reads_back) {
  const std::string text = traced("hf-eager").trace.dump(0);
  EXPECT_EQ(parse_json(text, "trace").dump(0), text);
}

TEST(ChromeTrace, events_of_a_track_do_not_overlap_and_end_within_the_step) {
  for (const char* stack : {"fused", "hf-eager", "torch-graph", "vllm"}) {
    const Traced result = traced(stack, {.pipeline = 2});
    std::map<std::pair<int64_t, int64_t>, double> end;  // by process and track
    for (const Json& event : result.trace.find("traceEvents")->items()) {
      if (event.find("ph")->string() != "X") continue;
      const double start = event.find("ts")->number(), duration = event.find("dur")->number();
      double& before = end[{event.find("pid")->integer(), event.find("tid")->integer()}];
      EXPECT_GE(start, before - 1e-6) << stack;
      before = start + duration;
      EXPECT_LE(before, result.step.seconds.value * 1e6 + 1e-6) << stack;
    }
    EXPECT_GE(end.size(), 2U);
  }
}

TEST(ChromeTrace, device_events_sum_to_the_kernels) {
  for (const char* stack : {"fused", "hf-eager", "torch-graph", "vllm"}) {
    const Traced result = traced(stack);
    double sum = 0;
    size_t count = 0, launches = 0;
    for (const Json& event : result.trace.find("traceEvents")->items()) {
      const Json* category = event.find("cat");
      if (category == nullptr || category->string() == "launch") continue;
      sum += event.find("dur")->number();
      ++count;
    }
    for (const TimedLaunch& timed : result.step.stages[0].launches) launches += static_cast<size_t>(timed.launch.count);
    EXPECT_EQ(count, launches) << stack;
    EXPECT_NEAR(sum, result.step.stages[0].kernels.value * 1e6, 1e-3) << stack;
  }
}

}  // namespace foretoken::chrome_trace_test
