#include "plan/serving/serving_planner.h"

#include <algorithm>

#include <fmt/format.h>

#include "compose/device_formats.h"
#include "compose/step_estimate.h"
#include "hardware/node_file.h"
#include "library/deployment.h"
#include "library/facts_digest.h"
#include "plan/serving/most_in_flight.h"
#include "plan/serving/stored_evaluator.h"

namespace foretoken {

HardwareChoice hardware_choice(const Library& library, const std::string& device, int64_t most_devices,
                               std::optional<double> usd_per_hour, Tier tier, const PlacementSpec& placement) {
  const HardwareCatalogue hardware = library.hardware();
  HardwareChoice choice{.device = hardware.device(device), .most_devices = most_devices};
  choice.node = library.node_of(choice.device, placement);
  choice.node_devices = choice.node ? choice.node->device_count : 1;
  if (choice.node && choice.node->fabric.kind == NodeFabricKind::pcie && most_devices > 1) {
    const int64_t largest = std::min<int64_t>(most_devices, choice.node_devices);
    for (int64_t devices = 2; devices <= largest; ++devices) {
      const std::shared_ptr<const RankNetwork> group = library.network(choice.device, {.tensor = devices}, placement);
      if (group) choice.link_notes[devices] = group->notes();
    }
  }
  choice.usd_per_hour = usd_per_hour;
  choice.is_bound = tier == Tier::roofline;
  const KernelPredictor kernels = library.predictor(device, tier);
  choice.sheet_only = library.predictor(device).is_known_by_sheet_only();
  const GemmShape usual{.m = 64, .n = 4096, .k = 4096, .scheme = Scheme::bf16};
  const bool multiplies = choice.device.type_or_fallback(DType::bf16).has_value();
  choice.is_swept = !choice.sheet_only && multiplies && kernels.estimate(usual).tier == Tier::measured;
  if (!usd_per_hour) {
    if (const MaybeFact<double> rent = library.rent_usd_per_hour(choice.device)) choice.usd_per_hour = rent->value;
  }
  return choice;
}

double sheet_share(const Library& library, const Model& model, const HardwareChoice& choice, int64_t context,
                   Tier tier) {
  if (choice.sheet_only) return 1;
  if (!loads_on(model, choice.device)) return 0;
  const Model loaded = run_on(model, choice.device);
  const KernelPredictor kernels = library.predictor(choice.device, tier);
  const StepRequest steps[] = {{.phase = StepPhase::prefill, .batch = 1, .input_len = context},
                               {.phase = StepPhase::decode, .batch = 32, .context_len = context}};
  double shares = 0;
  for (const StepRequest& request : steps) {
    const StepEstimate step = estimate_step(loaded, request, {}, kernels);
    double total = 0, by_sheet = 0;
    for (const StageEstimate& stage : step.stages) {
      for (const TimedOperator& timed : stage.operators) {
        total += timed.seconds.value;
        if (timed.kernel && timed.kernel->tier == Tier::roofline) by_sheet += timed.seconds.value;
      }
    }
    shares += by_sheet / total;
  }
  return shares / std::size(steps);
}

ServingFacts ServingPlanner::facts() const {
  return {.device_models =
              [this](const Device& device, const ParallelPlan& plan, const PlacementSpec& /*of_engine*/) {
                const auto file = device_files.find(device.name);
                DeviceModels models = library.device_models(file == device_files.end() ? device.name : file->second,
                                                            plan, tier, placement);
                models.power = library.power_model(device);
                return models;
              },
          .stack = [stacks = stacks_of(library)](std::string_view name) { return stacks.stack(std::string(name)); },
          .deployment = library.deployment(),
          .host_factor = host_factor};
}

std::string ServingPlanner::facts_name() const {
  std::vector<std::filesystem::path> files(other_files.begin(), other_files.end());
  for (const auto& [device, file] : device_files) files.emplace_back(file);
  if (means_a_file(placement.node)) files.emplace_back(placement.node);
  if (means_a_file(placement.cluster)) files.emplace_back(placement.cluster);
  std::string name = fmt::format("{}, tier {}", facts_digest(library, files), tier_name(tier));
  if (library.deployment()) name += ", " + deployment_json(*library.deployment()).dump(0);
  if (placement.is_given()) name += ", " + placement_key(placement);
  if (host_factor != 1) name += fmt::format(", host factor {}", host_factor);
  return name;
}

SoughtGoals ServingPlanner::seek(const ServingSearchResult& result) const {
  const PlanPoint* winner = result.winner();
  if (winner == nullptr && result.without_rate) winner = result.without_rate->winner();
  if (winner == nullptr) return {};
  const HardwareCatalogue hardware = library.hardware();
  std::vector<HardwareChoice> others;
  for (const std::string& name : hardware.device_names()) {
    const bool is_offered = std::any_of(question.hardware.begin(), question.hardware.end(),
                                        [&](const HardwareChoice& one) { return one.device.name == name; });
    // An offer is asked for by its name.
    if (is_offered || hardware.is_refused(name) || !library.rent_usd_per_hour(hardware.device(name))) continue;
    HardwareChoice other = hardware_choice(library, name, winner->layout.devices(), std::nullopt, tier);
    if (other.is_swept) others.push_back(std::move(other));
  }
  return seek_goals(question, traffic, facts(), *winner, others, check_wanted);
}

std::optional<LayoutExplanation> ServingPlanner::explain(const ServingSearchResult& result) const {
  const PlanPoint* winner = result.winner();
  if (winner == nullptr || result.by_closed_form) return std::nullopt;
  try {
    const double rate = question.rate.value_or(winner->capacity.value);
    const double load = question.in_flight ? static_cast<double>(*question.in_flight) : rate;
    return explain_layout(question, traffic, facts(), winner->layout, load, check_wanted);
  } catch (const SearchStopped&) {
    return std::nullopt;
  }
}

std::optional<ServingPlanner::MostInFlight> ServingPlanner::most_in_flight(const ServingSearchResult& result) const {
  constexpr size_t compared = 3;
  MostInFlight most;
  try {
    for (size_t i = 0; i < std::min(compared, result.ranking.size()); ++i) {
      const PlanPoint& point = result.points[result.ranking[i]];
      const int64_t requests = foretoken::most_in_flight(question, traffic, facts(), point, check_wanted);
      if (requests > most.requests) most = {.requests = requests, .layout = point.layout};
    }
  } catch (const SearchStopped&) {
    return std::nullopt;
  }
  return most.requests > 0 ? std::optional(most) : std::nullopt;
}

std::optional<DayPlan> ServingPlanner::day(const ServingSearchResult& result, const DaySettings& settings) const {
  if (result.winner() == nullptr) return std::nullopt;
  try {
    return plan_day(question, traffic, facts(), result, settings, check_wanted);
  } catch (const SearchStopped&) {
    return std::nullopt;
  }
}

namespace {

bool is_known(const ServingSearchResult& result, const TriedEngine& tried) {
  return std::any_of(result.points.begin(), result.points.end(),
                     [&](const PlanPoint& point) { return is_of(point.layout, tried) && point.capacity.value > 0; });
}

// Rows that nothing was simulated for before the search was stopped, by closed form. Where nothing else serves what is
// asked, they are the answer.
void add_closed_forms(ServingSearchResult& result, const ServingSearchResult& closed) {
  const bool has_winner = !result.ranking.empty();
  std::vector<bool> wanted(closed.points.size());
  for (const TriedEngine& tried : result.tried) {
    if (is_known(result, tried) || (result.without_rate && is_known(*result.without_rate, tried))) continue;
    for (size_t i = 0; i < closed.points.size(); ++i) wanted[i] = wanted[i] || is_of(closed.points[i].layout, tried);
  }
  std::vector<size_t> places(closed.points.size());
  for (size_t i = 0; i < closed.points.size(); ++i) {
    places[i] = result.points.size();
    if (wanted[i]) result.points.push_back(closed.points[i]);
  }
  for (const size_t i : closed.ranking) {
    if (!has_winner && wanted[i]) result.ranking.push_back(places[i]);
  }
}

}  // namespace

ServingSearchResult ServingPlanner::search() const {
  const ServingFacts from = facts();
  std::optional<ResultStore> results;
  if (!store.empty()) results.emplace(store, stored_question(question, traffic, facts_name()));
  const std::unique_ptr<PlanEvaluator> evaluator =
      results ? stored_evaluator(question, from, traffic, threads, *results, processes)
              : threaded_evaluator(question, from, traffic, threads, check_wanted);
  // Closed forms take a second or two.
  const auto by_closed_form = [&] {
    SearchLimits quick = limits;
    quick.closed_form = true;
    return search_serving_layouts(question, *threaded_evaluator(question, from, traffic, threads), quick, tell);
  };
  ServingSearchResult result;
  try {
    result = search_serving_layouts(question, *evaluator, limits, tell, check_wanted);
  } catch (const SearchStopped&) {
    result = by_closed_form();  // nothing was simulated yet
    result.stopped = true;
    return result;
  }
  const bool is_whole = std::all_of(result.tried.begin(), result.tried.end(),
                                    [&](const TriedEngine& tried) { return is_known(result, tried); });
  if (result.stopped && !is_whole) add_closed_forms(result, by_closed_form());
  return result;
}

}  // namespace foretoken
