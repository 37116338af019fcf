#include "report/serving/first_token_note.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "serving/serving_run.h"

namespace foretoken {
namespace {

// Without its last sentence, what that means for the answer. Empty where nothing is known.
std::string published_runs_text(const FirstTokenDoubt& doubt, bool has_separate_pools) {
  if (doubt.high <= 1) return {};
  return fmt::format(
      "Nine in ten published runs with {} measured {} to {} times the simulated TTFT. The cause is unknown.",
      has_separate_pools ? "separate prefill and decode workers" : "attention ranks that take every step together",
      number_text(doubt.low), number_text(doubt.high));
}

}  // namespace

std::string first_token_note(const SimulationConfig& config) {
  const std::string text = published_runs_text(first_token_doubt(config), config.disaggregation.has_value());
  return text.empty() ? text : text + " The interval of TTFT includes this.";
}

std::string first_token_note(const ServingQuestion& question, const ServingLayout& layout) {
  const bool asks_for_first_tokens = std::any_of(question.slos.begin(), question.slos.end(), [](const LatencySlo& slo) {
    return slo.metric == SloMetric::ttft || slo.metric == SloMetric::e2el;
  });
  const EngineKind& kind = engine_kind(layout.pool.engine.engine);
  const bool has_ranks = layout.pool.engine.attention_ranks > 1;
  const FirstTokenDoubt doubt =
      layout.decode ? kind.doubt_of_pools : (has_ranks ? kind.doubt_of_ranks : FirstTokenDoubt{});
  const std::string text = published_runs_text(doubt, layout.decode.has_value());
  if (!asks_for_first_tokens || text.empty()) return {};
  return text + " This plan keeps its limits in the simulation only. Measure TTFT before you rely on the plan.";
}

}  // namespace foretoken
