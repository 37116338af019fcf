#include "report/page/shown_layout.h"

#include <limits>

#include "report/serving/serving_files.h"

namespace foretoken {

Json layout_trace(const ServingPlanner& planner, const ServingLayout& layout, double rate) {
  const ServingQuestion& question = planner.question;
  EngineShelf shelf(question, planner.facts(), planner.traffic);
  const LayoutSimulator simulator(question, planner.traffic, shelf);
  const LayoutEngines engines = shelf.engines(layout);
  RunTrace trace;
  ServingRunRequest request = simulator.run_request(layout, engines, rate, simulator.requests_for(Effort::quick, rate));
  request.observers.push_back(&trace);
  run_serving(request);
  return trace.document();
}

ShownLayout shown_layout(const ServingPlanner& planner, const ServingLayout& layout, double rate, double capacity) {
  const ServingQuestion& question = planner.question;
  EngineShelf shelf(question, planner.facts(), planner.traffic);
  const LayoutSimulator simulator(question, planner.traffic, shelf);
  const LayoutEngines engines = shelf.engines(layout);
  const auto request_at = [&](double requests_per_s) {
    ServingRunRequest request = simulator.run_request(layout, engines, requests_per_s,
                                                      simulator.requests_for(Effort::promised, requests_per_s));
    request.config.bound = question.pessimistic ? StepBound::high : StepBound::value;
    return request;
  };
  ServingRunRequest request = request_at(rate);
  request.step_bounds = true;
  const auto first_decode = static_cast<int32_t>(layout.pool.replicas);
  StepMix of_pool(0, first_decode), of_decode(first_decode, std::numeric_limits<int32_t>::max());
  ShownLayout shown{.rate = rate,
                    .run = {},
                    .percentiles = request.percentiles,
                    .goals = request.goals,
                    .curves = {},
                    .rates = {},
                    .steps = {},
                    .memory = (engines.decode != nullptr ? *engines.decode : *engines.pool).group.memory,
                    .device = question.hardware_of(layout.pool.engine.device).device};
  request.observers = {&of_pool, &of_decode, &shown.curves};
  shown.run = run_serving(request);
  for (const double share : {0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25}) {
    shown.rates.push_back({share * capacity, run_serving(request_at(share * capacity)).metrics});
  }
  const auto add_steps = [&](const ReadyEngine& engine, const StepMix& mix) {
    if (!engine.group.has_operators) return;
    const int64_t ranks = engine.group.config.options.lock_step_ranks;
    for (TypicalStep& step : typical_steps(engine.group.composed(), mix, Logits::last, ranks)) {
      shown.steps.push_back(std::move(step));
    }
  };
  add_steps(*engines.pool, of_pool);
  if (layout.decode) add_steps(*engines.decode, of_decode);
  return shown;
}

}  // namespace foretoken
