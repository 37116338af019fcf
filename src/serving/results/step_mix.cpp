#include "serving/results/step_mix.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/simulated_time.h"

namespace foretoken {
namespace {

int64_t at_least_one(double value) {
  return std::max<int64_t>(1, std::llround(value));
}

}  // namespace

StepRequest StepShare::typical() const {
  ensure(steps > 0, "only steps that ran have a typical one");
  const auto count = static_cast<double>(steps);
  const int64_t a_step = prompts > 0 ? at_least_one(prompts / count) : 0;
  const int64_t decodes = decode_tokens > 0 ? at_least_one(decode_tokens / count) : 0;
  const int64_t prompt_context = prompts > 0 ? std::llround(prompt_context_tokens / prompts) : 0;
  const int64_t decode_context = decodes > 0 ? at_least_one(decode_context_tokens / decode_tokens) : 0;
  // Rounded prompts share the tokens of the mean step: their sum is what matters to all but attention.
  StepRequest request{.phase = phase,
                      .batch = a_step + decodes,
                      .input_len = a_step > 0 ? at_least_one(prefill_tokens / count / static_cast<double>(a_step)) : 1};
  request.context_len = phase == StepPhase::prefill ? prompt_context : decode_context;
  if (phase == StepPhase::mixed) {
    request.prompts = a_step;
    request.prompt_context_len = prompt_context;
  }
  return request;
}

void StepMix::step_ran(const StepRecord& step) {
  if (step.replica < first_replica_ || step.replica >= end_replica_) return;
  const StepPhase phase = step.prefill_tokens == 0  ? StepPhase::decode
                          : step.decode_tokens == 0 ? StepPhase::prefill
                                                    : StepPhase::mixed;
  StepShare& share =
      *std::find_if(shares_.begin(), shares_.end(), [&](const StepShare& one) { return one.phase == phase; });
  const auto repeats = static_cast<double>(step.repeats);
  share.steps += step.repeats;
  share.seconds += to_seconds(step.end - step.begin).value();
  share.prefill_tokens += static_cast<double>(step.prefill_tokens) * repeats;
  share.prompts += static_cast<double>(step.prompts) * repeats;
  share.prompt_context_tokens += static_cast<double>(step.prompt_context_tokens) * repeats;
  const auto decodes = static_cast<double>(step.decode_tokens + step.idle_decodes);
  share.decode_tokens += decodes * repeats;
  // Each context grows by one token a step.
  const double growth = decodes * (repeats - 1) / 2;
  share.decode_context_tokens += (static_cast<double>(step.decode_context_tokens) + growth) * repeats;
}

double StepMix::busy_seconds() const {
  double sum = 0;
  for (const StepShare& share : shares_) sum += share.seconds;
  return sum;
}

}  // namespace foretoken
