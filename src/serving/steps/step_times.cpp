#include "serving/steps/step_times.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// Below this many steps each is asked for.
constexpr int64_t short_run = 8;
constexpr double run_tolerance = 1e-4;

Estimate plus(const Estimate& a, const Estimate& b) {
  return {.value = a.value + b.value, .low = a.low + b.low, .high = a.high + b.high, .kind = std::max(a.kind, b.kind)};
}

// Sum over the steps first .. first + steps - 1, whose outer ones take `begin` and `end`.
Estimate sum_of_steps(StepTimes& times, const StepBatch& batch, int64_t first, int64_t steps, const Estimate& begin,
                      const Estimate& end) {
  if (steps <= short_run) {
    Estimate sum = begin;
    for (int64_t i = 1; i + 1 < steps; ++i) sum = plus(sum, times.step_seconds(grown(batch, first + i)));
    return steps > 1 ? plus(sum, end) : sum;
  }
  const int64_t middle = (steps - 1) / 2;
  const Estimate at_middle = times.step_seconds(grown(batch, first + middle));
  const double share = static_cast<double>(middle) / static_cast<double>(steps - 1);
  const double straight = begin.value + (end.value - begin.value) * share;
  if (std::abs(straight - at_middle.value) <= run_tolerance * at_middle.value) {
    return scaled(plus(begin, end), 0.5 * static_cast<double>(steps));
  }
  const Estimate after_middle = times.step_seconds(grown(batch, first + middle + 1));
  return plus(sum_of_steps(times, batch, first, middle + 1, begin, at_middle),
              sum_of_steps(times, batch, first + middle + 1, steps - middle - 1, after_middle, end));
}

}  // namespace

EqualChunks equal_chunks(std::span<const PromptChunk> chunks) {
  if (chunks.empty()) return {};
  double tokens = 0, work = 0;
  for (const PromptChunk& chunk : chunks) {
    const auto fresh = static_cast<double>(chunk.new_tokens);
    tokens += fresh;
    work += fresh * (static_cast<double>(chunk.context_tokens) + fresh / 2);
  }
  const double each = tokens / static_cast<double>(chunks.size());
  // Unequal chunks have more work than equal ones, so this is never below zero but by rounding.
  return {.count = static_cast<int64_t>(chunks.size()),
          .new_tokens = each,
          .context_tokens = std::max(0.0, work / tokens - each / 2)};
}

int64_t StepBatch::new_tokens() const {
  int64_t tokens = decodes + drafted_tokens;
  for (const PromptChunk& chunk : prompts) tokens += chunk.new_tokens;
  return tokens;
}

int64_t StepBatch::sampled_tokens() const {
  int64_t tokens = decodes + (samples_drafts ? drafted_tokens : 0);
  for (const PromptChunk& chunk : prompts) tokens += chunk.yields_token ? 1 : 0;
  return tokens;
}

StepBatch grown(const StepBatch& decodes, int64_t steps) {
  ensure(decodes.prompts.empty() && decodes.drafted_tokens == 0, "only decodes grow by themselves");
  return {.decodes = decodes.decodes,
          .decode_context_tokens = decodes.decode_context_tokens + decodes.decodes * steps,
          .longest_decode_context = decodes.longest_decode_context + steps,
          .tokens_of_all_ranks = decodes.tokens_of_all_ranks,
          .adapters = decodes.adapters,
          .adapter_tokens = decodes.adapter_tokens,
          .prompts = {}};
}

Estimate tabulated_seconds(double seconds, double error, const std::string& source) {
  constexpr double longest = 1e5;
  if (!(seconds >= 0 && seconds <= longest)) {
    throw InputError({.source = source,
                      .value = number_text(seconds) + " s for a step of this run",
                      .expected = "tables that cover the whole run, with times from 0 to 100000 s"});
  }
  return {.value = seconds,
          .low = seconds * (1 - error),
          .high = seconds * (1 + error),
          .kind = error > 0 ? Confidence::interpolated : Confidence::measured};
}

void StepTimes::stage_seconds(const StepBatch& batch, std::span<Estimate> stages) {
  std::fill(stages.begin(), stages.end(), scaled(step_seconds(batch), 1 / static_cast<double>(stages.size())));
}

Estimate StepTimes::decode_run_seconds(const StepBatch& batch, int64_t steps) {
  ensure(steps >= 1, "a run has a step");
  const Estimate begin = step_seconds(batch);
  if (steps == 1) return begin;
  return sum_of_steps(*this, batch, 0, steps, begin, step_seconds(grown(batch, steps - 1)));
}

}  // namespace foretoken
