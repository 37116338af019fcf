#include "serving/results/typical_steps.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/simulated_time.h"
#include "compose/model_spec.h"
#include "library/library.h"
#include "serving/engine/engine_builder.h"
#include "serving/serving_spec.h"

namespace foretoken::typical_steps_test {

struct AllSteps final : RunObserver {
  std::vector<StepRecord> steps;
  void step_ran(const StepRecord& step) override { steps.push_back(step); }
};

TEST(OperatorAccount, is_what_the_steps_add_up_to_one_by_one) {
  const Library library = Library::open();
  const Device device = library.hardware().device("h100_sxm");
  const EngineSpec engine{.model = open_model(library, {.model = "Llama-3.1-8B"}, device), .device = device};
  LoadSpec load{.num_prompts = 40, .input_len = 900, .output_len = 60};
  load.arrivals.rate = 12;
  EngineBuilder builder(serving_facts(library));
  StepMix mix;
  AllSteps all;
  simulate_serving(builder, engine, load, {.observers = {&mix, &all}, .percentiles = {}, .step_bounds = false});
  const ReplicaGroup group = builder.build(engine);
  const OperatorAccount account = operator_account(group.composed(), mix, group.logits);

  std::map<std::string, double> exact;
  double busy = 0, waited = 0;
  for (const StepRecord& record : all.steps) {
    StepMix alone;
    alone.step_ran(record);
    for (const TypicalStep& one : typical_steps(group.composed(), alone, group.logits)) {
      const double scale = one.share.seconds / one.step.seconds.value;
      busy += one.share.seconds;
      waited += one.share.seconds * static_cast<double>(record.decode_tokens);
      for (const StageEstimate& stage : one.step.stages) {
        for (const TimedOperator& timed : stage.operators) exact[timed.call.name] += scale * timed.seconds.value;
      }
    }
  }
  ASSERT_GT(all.steps.size(), 50u);
  double sum = 0, sum_of_waits = 0;
  for (const OperatorTime& one : account.operators) {
    sum += one.sum();
    sum_of_waits += one.decode_wait_seconds;
    double over_time = 0;
    for (const double slice : one.slice_seconds) over_time += slice;
    EXPECT_NEAR(over_time, one.sum(), 1e-9) << one.name;
    if (one.name == between_kernels) continue;
    EXPECT_NEAR(one.sum(), exact[one.name], 0.005 * busy) << one.name;
  }
  EXPECT_NEAR(sum, busy, 1e-6 * busy);
  EXPECT_NEAR(sum_of_waits, waited, 0.01 * waited) << "what its sequences waited for, step by step";

  StepMix of_four_ranks;
  for (StepRecord record : all.steps) {
    for (int64_t* size : {&record.prefill_tokens, &record.prompts, &record.prompt_context_tokens, &record.decode_tokens,
                          &record.decode_context_tokens}) {
      *size *= 4;
    }
    of_four_ranks.step_ran(record);
  }
  const OperatorAccount of_one = operator_account(group.composed(), of_four_ranks, group.logits, 4);
  ASSERT_EQ(of_one.operators.size(), account.operators.size());
  for (const OperatorTime& one : of_one.operators) {
    const auto same = std::find_if(account.operators.begin(), account.operators.end(),
                                   [&](const OperatorTime& other) { return other.name == one.name; });
    ASSERT_NE(same, account.operators.end()) << one.name;
    EXPECT_NEAR(one.sum(), same->sum(), 0.01 * busy) << one.name << ": of ranks in lock step, each has its own tokens";
  }

  const OperatorAccount twice = together({account, account});
  EXPECT_NEAR(twice.operators.front().sum(), 2 * account.operators.front().sum(), 1e-9);
  EXPECT_NEAR(twice.operators.front().decode_wait_seconds, 2 * account.operators.front().decode_wait_seconds, 1e-9);
}

}  // namespace foretoken::typical_steps_test
