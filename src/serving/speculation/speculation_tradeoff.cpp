#include "serving/speculation/speculation_tradeoff.h"

#include <algorithm>

namespace foretoken {

SpeculationPoint speculation_point(const SpeculationSteps& steps, int64_t batch, int64_t context) {
  const Speculation& speculation = steps.speculation;
  StepBatch decodes{
      .decodes = batch, .decode_context_tokens = batch * context, .longest_decode_context = context, .prompts = {}};
  SpeculationPoint point{.batch = batch, .context = context, .plain_seconds = steps.target->step_seconds(decodes)};
  const bool drafts = speculation.most_sequences == 0 || batch <= speculation.most_sequences;
  if (drafts) {
    decodes.drafted_tokens = batch * speculation.verified_tokens;
    point.tokens = speculation.acceptance.expected_tokens(speculation.draft_tokens);
  }
  point.verify_seconds = steps.target->step_seconds(decodes).value;
  point.speculated_seconds = steps.speculated->step_seconds(decodes);
  const auto ratio = [&](double plain, double speculated) { return point.tokens * plain / speculated; };
  const double value = ratio(point.plain_seconds.value, point.speculated_seconds.value);
  const double at_low = ratio(point.plain_seconds.low, point.speculated_seconds.low);
  const double at_high = ratio(point.plain_seconds.high, point.speculated_seconds.high);
  point.speedup = {.value = value,
                   .low = std::min({value, at_low, at_high}),
                   .high = std::max({value, at_low, at_high}),
                   .kind = std::max(point.plain_seconds.kind, point.speculated_seconds.kind)};
  return point;
}

std::optional<int64_t> break_even_batch(const SpeculationSteps& steps, int64_t context, int64_t most) {
  const auto pays = [&](int64_t batch) { return speculation_point(steps, batch, context).speedup.value > 1; };
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
