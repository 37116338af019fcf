#include "serving/speculation/speculation_tradeoff.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// How much of their errors a plain step and one with drafts share. Of measured decode steps of one model (H200,
// data/measured/h200_sxm/steps.csv) whose batches differ by a factor of 4 to 64, the error of the ratio is 0.48 to 0.63
// of what independent errors of the width of our intervals would give: correlations of 0.60 to 0.77.
constexpr double shared_error = 0.65;

// Half of the interval, as a logarithm.
double log_half_width(const Estimate& estimate) {
  ensure(estimate.low > 0 && estimate.high >= estimate.low, "times and tokens are above zero");
  return portable_log(estimate.high / estimate.low) / 2;
}

// Of the ratio of two times whose errors are correlated.
double log_half_width_of_ratio(const Estimate& a, const Estimate& b, double correlation) {
  const double one = log_half_width(a), other = log_half_width(b);
  return std::sqrt(std::max(0.0, one * one + other * other - 2 * correlation * one * other));
}

Estimate tokens_of_verification(const Speculation& speculation) {
  Estimate tokens = exactly(speculation.acceptance.expected_tokens(speculation.draft_tokens));
  for (const Acceptance& end : speculation.unknown_acceptance) {
    const double at_end = end.expected_tokens(speculation.draft_tokens);
    tokens.low = std::min(tokens.low, at_end);
    tokens.high = std::max(tokens.high, at_end);
  }
  return tokens;
}

Estimate speedup_of(const SpeculationPoint& point, double correlation) {
  const double value = point.tokens.value * point.plain_seconds.value / point.speculated_seconds.value;
  const double times = log_half_width_of_ratio(point.plain_seconds, point.speculated_seconds, correlation);
  const double fewer = portable_log(point.tokens.value / point.tokens.low);
  const double more = portable_log(point.tokens.high / point.tokens.value);
  return {.value = value,
          .low = value * portable_exp(-portable_hypot(times, fewer)),
          .high = value * portable_exp(portable_hypot(times, more)),
          .kind = std::max(point.plain_seconds.kind, point.speculated_seconds.kind)};
}

}  // namespace

SpeculationPoint speculation_point(const SpeculationSteps& steps, int64_t batch, int64_t context) {
  const Speculation& speculation = steps.speculation;
  StepBatch decodes{
      .decodes = batch, .decode_context_tokens = batch * context, .longest_decode_context = context, .prompts = {}};
  SpeculationPoint point{.batch = batch,
                         .context = context,
                         .plain_seconds = steps.target->step_seconds(decodes),
                         .speculated_seconds = {},
                         .tokens = exactly(1),
                         .speedup = {}};
  const bool drafts = speculation.most_sequences == 0 || batch <= speculation.most_sequences;
  if (drafts) {
    decodes.drafted_tokens = batch * speculation.verified_tokens;
    point.tokens = tokens_of_verification(speculation);
    point.verify_seconds = steps.verified->step_seconds(decodes).value;
    point.speculated_seconds = steps.speculated->step_seconds(decodes);
  } else {  // both are one step
    point.verify_seconds = point.plain_seconds.value;
    point.speculated_seconds = point.plain_seconds;
  }
  point.speedup = speedup_of(point, drafts ? shared_error : 1);
  return point;
}

std::optional<int64_t> break_even_batch(const SpeculationSteps& steps, int64_t context, int64_t most,
                                        double Estimate::*end) {
  const auto pays = [&](int64_t batch) { return speculation_point(steps, batch, context).speedup.*end > 1; };
  if (!pays(1)) return 1;
  int64_t paying = 1, losing = 2;
  while (losing <= most && pays(losing)) {
    paying = losing;
    losing *= 2;
  }
  if (losing > most) {
    if (paying == most || pays(most)) return std::nullopt;
    losing = most;
  }
  while (losing - paying > 1) {
    const int64_t middle = paying + (losing - paying) / 2;
    (pays(middle) ? paying : losing) = middle;
  }
  return losing;
}

}  // namespace foretoken
