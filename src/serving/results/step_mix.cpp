#include "serving/results/step_mix.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/simulated_time.h"

namespace foretoken {
namespace {

int64_t at_least_one(double value) {
  return std::max<int64_t>(1, std::llround(value));
}

constexpr size_t most_slices = 64;

// Two to each doubling; 0 stays apart.
int32_t size_class(double value) {
  return value < 1 ? -1 : static_cast<int32_t>(std::floor(2 * portable_log2(value)));
}

void add_step(StepShare& share, const StepRecord& step) {
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
  add_step(share, step);

  const auto decodes = static_cast<double>(step.decode_tokens + step.idle_decodes);
  const auto prompts = static_cast<double>(step.prompts);
  const auto each = [](int64_t sum, double count) { return count > 0 ? static_cast<double>(sum) / count : 0; };
  const double growth = static_cast<double>(step.repeats - 1) / 2;
  const SizeKey key = {static_cast<int32_t>(phase), size_class(decodes),
                       size_class(each(step.decode_context_tokens, decodes) + (decodes > 0 ? growth : 0)),
                       size_class(static_cast<double>(step.prefill_tokens)),
                       size_class(each(step.prompt_context_tokens, prompts))};
  StepClass& one = classes_[key];
  one.share.phase = phase;
  add_step(one.share, step);
  add_time(one, to_seconds(step.begin).value(), to_seconds(step.end).value());
}

void StepMix::add_time(StepClass& one, double begin, double end) {
  while (end > slice_seconds_ * most_slices) {
    slice_seconds_ *= 2;
    for (auto& [key, other] : classes_) {
      std::vector<double>& slices = other.slice_seconds;
      for (size_t i = 0; i < slices.size(); ++i) {
        const double seconds = slices[i];
        slices[i] = 0;
        slices[i / 2] += seconds;
      }
      slices.resize((slices.size() + 1) / 2);
    }
  }
  const auto slice_of = [&](double time) {
    return std::min(most_slices - 1, static_cast<size_t>(std::max(0.0, time) / slice_seconds_));
  };
  const size_t first = slice_of(begin), last = slice_of(end);
  if (one.slice_seconds.size() <= last) one.slice_seconds.resize(last + 1);
  for (size_t i = first; i <= last; ++i) {
    const double from = i == first ? begin : slice_seconds_ * static_cast<double>(i);
    const double to = i == last ? end : slice_seconds_ * static_cast<double>(i + 1);
    one.slice_seconds[i] += to - from;
  }
}

std::vector<StepClass> StepMix::classes() const {
  std::vector<StepClass> all;
  all.reserve(classes_.size());
  for (const auto& [key, one] : classes_) all.push_back(one);
  return all;
}

double StepMix::busy_seconds() const {
  double sum = 0;
  for (const StepShare& share : shares_) sum += share.seconds;
  return sum;
}

}  // namespace foretoken
