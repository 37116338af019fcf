#include "app/serving_planner.h"

#include <limits>

#include <fmt/format.h>

#include "app/facts_digest.h"
#include "plan/serving/stored_evaluator.h"
#include "report/serving_files.h"

namespace foretoken {

HardwareChoice hardware_choice(const Library& library, const std::string& device, int64_t most_devices,
                               std::optional<double> usd_per_hour, Tier tier) {
  const HardwareCatalogue hardware = library.hardware();
  HardwareChoice choice{.device = hardware.device(device), .most_devices = most_devices};
  choice.node = hardware.node_with(choice.device);
  choice.node_devices = choice.node ? choice.node->device_count : 1;
  choice.usd_per_hour = usd_per_hour;
  choice.is_bound = tier == Tier::roofline;
  choice.sheet_only = library.predictor(device).is_known_by_sheet_only();
  if (!usd_per_hour) {
    if (const MaybeFact<double> rent = library.rent_usd_per_hour(choice.device)) choice.usd_per_hour = rent->value;
  }
  return choice;
}

ServingFacts ServingPlanner::facts() const {
  return {.device_models =
              [this](const Device& device, const ParallelPlan& plan) {
                const auto file = device_files.find(device.name);
                DeviceModels models =
                    library.device_models(file == device_files.end() ? device.name : file->second, plan, tier);
                models.power = library.power_model(device);
                return models;
              },
          .stack = [stacks = library.stacks()](std::string_view name) { return stacks.stack(std::string(name)); }};
}

std::string ServingPlanner::facts_name() const {
  std::vector<std::filesystem::path> files(other_files.begin(), other_files.end());
  for (const auto& [device, file] : device_files) files.emplace_back(file);
  return fmt::format("{}, tier {}", facts_digest(library, files), tier_name(tier));
}

ServingSearchResult ServingPlanner::search() const {
  const ServingFacts from = facts();
  std::optional<ResultStore> results;
  if (!store.empty()) results.emplace(store, stored_question(question, traffic, facts_name()));
  const std::unique_ptr<PlanEvaluator> evaluator =
      results ? stored_evaluator(question, from, traffic, threads, *results)
              : threaded_evaluator(question, from, traffic, threads, check_wanted);
  return search_serving_layouts(question, *evaluator, limits, tell);
}

Json ServingPlanner::trace(const ServingLayout& layout, double rate) const {
  const ServingFacts from = facts();
  EngineShelf shelf(question, from, traffic);
  const LayoutSimulator simulator(question, traffic, shelf);
  const LayoutEngines engines = shelf.engines(layout);
  RunTrace trace;
  ServingRunRequest request = simulator.run_request(layout, engines, rate, simulator.requests_for(Effort::quick, rate));
  request.observers.push_back(&trace);
  run_serving(request);
  return trace.document();
}

ShownLayout ServingPlanner::show(const ServingLayout& layout, double rate, double capacity) const {
  const ServingFacts from = facts();
  EngineShelf shelf(question, from, traffic);
  const LayoutSimulator simulator(question, traffic, shelf);
  const LayoutEngines engines = shelf.engines(layout);
  const auto request_at = [&](double requests_per_s) {
    ServingRunRequest request =
        simulator.run_request(layout, engines, requests_per_s, simulator.requests_for(Effort::full, requests_per_s));
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
                    .memory = (engines.decode != nullptr ? *engines.decode : *engines.pool).memory,
                    .device = question.hardware_of(layout.pool.engine.device).device};
  request.observers = {&of_pool, &of_decode, &shown.curves};
  shown.run = run_serving(request);
  for (const double share : {0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25}) {
    shown.rates.push_back({share * capacity, run_serving(request_at(share * capacity)).metrics});
  }
  const auto add_steps = [&](const EnginePool& pool, const ReadyEngine& engine, const StepMix& mix) {
    const EngineChoice& choice = pool.engine;
    if (choice.speculates) return;
    const ParallelPlan plan = engine_ranks(choice.plan()).plan;
    const ComposedStepsConfig composed{.model = question.model_of(choice),
                                       .plan = plan,
                                       .models = from.device_models(question.hardware_of(choice.device).device, plan),
                                       .stack = engine.stack,
                                       .kv_dtype = choice.kv_dtype};
    for (TypicalStep& step : typical_steps(composed, mix)) shown.steps.push_back(std::move(step));
  };
  add_steps(layout.pool, *engines.pool, of_pool);
  if (layout.decode) add_steps(*layout.decode, *engines.decode, of_decode);
  return shown;
}

}  // namespace foretoken
