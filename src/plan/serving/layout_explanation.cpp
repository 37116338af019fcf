#include "plan/serving/layout_explanation.h"

#include <limits>
#include <vector>

namespace foretoken {
namespace {

double percentile_of(const ServingQuestion& question) {
  for (const LatencySlo& slo : question.slos) {
    if (slo.metric == SloMetric::ttft) return slo.percentile;
  }
  return TtftParts().percentile;
}

ExplainedPool explained(const ServingQuestion& question, const EnginePool& pool, const ReadyEngine& engine,
                        const StepMix& mix) {
  return {.device = &question.hardware_of(pool.engine.device).device,
          .devices_each = static_cast<double>(pool.engine.devices()),
          .busy_seconds = mix.busy_seconds(),
          .stages = static_cast<double>(pool.engine.pipeline),
          .steps = engine.group.has_operators ? typical_steps(engine.group.composed(), mix, Logits::last,
                                                              engine.group.config.options.lock_step_ranks)
                                              : std::vector<TypicalStep>()};
}

}  // namespace

std::optional<LayoutExplanation> explain_layout(const ServingQuestion& question, const Traffic& traffic,
                                                const ServingFacts& facts, const ServingLayout& layout, double load,
                                                const std::function<void()>& check_wanted) {
  EngineShelf shelf(question, facts, traffic);
  const LayoutSimulator simulator(question, traffic, shelf);
  const LayoutEngines engines = shelf.engines(layout);
  if (!engines.start()) return std::nullopt;
  const ServingLayout part = simulator.long_part(layout, load);
  const double own_load = load * static_cast<double>(part.devices()) / static_cast<double>(layout.devices());
  ServingRunRequest request =
      simulator.run_request(part, engines, own_load, simulator.requests_for(Effort::promised, own_load));
  request.config.bound = question.pessimistic ? StepBound::high : StepBound::value;
  const auto first_decode = static_cast<int32_t>(part.pool.replicas);
  StepMix of_pool(0, first_decode), of_decode(first_decode, std::numeric_limits<int32_t>::max());
  TtftRanking ranking;
  PromptEnds prompts(part.decode.has_value(), check_wanted);
  request.observers = {&of_pool, &of_decode, &ranking, &prompts};
  const ServingMetrics metrics = run_serving(request).metrics;
  std::vector<ExplainedPool> pools = {explained(question, part.pool, *engines.pool, of_pool)};
  if (part.decode) pools.push_back(explained(question, *part.decode, *engines.decode, of_decode));
  const double device_seconds = static_cast<double>(part.devices()) * metrics.duration_s;
  const auto explanation = explain_run(ranking, prompts, percentile_of(question), pools, device_seconds);
  if (!explanation) return std::nullopt;
  return LayoutExplanation{.rate = question.in_flight ? metrics.request_throughput * load / own_load : load,
                           .in_flight = question.in_flight.value_or(0),
                           .run = *explanation};
}

}  // namespace foretoken
