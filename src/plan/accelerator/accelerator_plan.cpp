#include "plan/accelerator/accelerator_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"

namespace foretoken {
namespace {

constexpr double most_bounds = 400'000;  // of a layer on a design: tens of seconds
constexpr size_t most_of_a_frontier = 16;
constexpr size_t candidates_per_finalist = 3;  // few tries rank roughly: so many are mapped again for one that is shown

void check_exhaustive(const AcceleratorPlanQuestion& question, const ChoiceGrid& grid) {
  const auto& methods = question.methods;
  if (std::find(methods.begin(), methods.end(), "exhaustive") == methods.end()) return;
  if (grid.size() <= static_cast<double>(question.budget.evaluations)) return;
  throw InputError({.source = "exhaustive",
                    .value = fmt::format("{:.6g} designs", grid.size()),
                    .expected = fmt::format("a space of no more than the {} evaluations allowed, or another method",
                                            question.budget.evaluations)});
}

struct MethodSeed {
  const SearcherKind& method;
  uint64_t seed = 0;
};

// What sees all designs sees them whatever the seed.
std::vector<MethodSeed> wanted_searches(const AcceleratorPlanQuestion& question) {
  std::vector<MethodSeed> all;
  for (const std::string& name : question.methods) {
    const size_t seeds = name == "exhaustive" ? 1 : question.seeds;
    for (size_t i = 0; i < seeds; ++i) all.push_back({.method = searcher_named(name), .seed = question.seed + i});
  }
  return all;
}

// Of all searches, each point once.
std::vector<EvaluatedDesign> all_designs(const std::vector<DesignSearchResult>& searches) {
  std::vector<EvaluatedDesign> all;
  std::set<DesignPoint> seen;
  for (const DesignSearchResult& search : searches) {
    for (const EvaluatedDesign& own : search.designs) {
      if (seen.insert(own.point).second) all.push_back(own);
    }
  }
  return all;
}

double late_gain_of(const std::vector<DesignSearchResult>& searches) {
  double least = std::numeric_limits<double>::infinity();
  for (const DesignSearchResult& search : searches) {
    if (search.best_so_far.empty() || !std::isfinite(search.best_so_far.back())) continue;
    const double half = search.best_so_far[(search.best_so_far.size() - 1) / 2];
    // A first half without any usable design says nothing about the gain: it is taken to be a factor of two.
    least = std::min(least, search.exhausted || search.method == "exhaustive" ? 0
                            : std::isfinite(half)                             ? half / search.best_so_far.back() - 1
                                                                              : 1);
  }
  return std::isfinite(least) ? least : 0;
}

// By how many times mapping with all tries lowers what few tries found, at most, of the designs mapped both ways.
double most_lowered(const std::vector<EvaluatedDesign>& quick, const AcceleratorPlan& plan,
                    const DesignObjective& objective) {
  double most = objective.value(plan.base_quickly.run) / objective.value(plan.base.run);
  for (const EvaluatedDesign& own : plan.remapped) {
    for (const EvaluatedDesign& before : quick) {
      if (before.point == own.point && own.costs.is_usable())
        most = std::max(most, objective.value(before.costs.run) / objective.value(own.costs.run));
    }
  }
  return most;
}

double undecided_designs(const std::vector<EvaluatedDesign>& evaluated, const AcceleratorPlan& plan,
                         const DesignObjective& objective, const DesignEvaluator& evaluator) {
  const double found = objective.value(plan.winner()->costs.run);
  const double lowered = most_lowered(evaluated, plan, objective);
  const auto is_remapped = [&](const DesignPoint& point) {
    return std::ranges::find(plan.remapped, point, &EvaluatedDesign::point) != plan.remapped.end();
  };
  double rough = 0, seen_within_bound = 0;
  for (const EvaluatedDesign& own : evaluated) {
    const std::optional<RunCosts> least = evaluator.least(own.point);
    if (!least || objective.value(*least) >= found) continue;
    ++seen_within_bound;
    if (own.costs.is_usable() && !is_remapped(own.point) && objective.value(own.costs.run) / lowered < found) ++rough;
  }
  const double unseen = plan.bound
                            ? static_cast<double>(plan.bound->designs - plan.bound->no_better) - seen_within_bound
                            : plan.designs - static_cast<double>(evaluated.size());
  return rough + std::max(0.0, unseen);
}

}  // namespace

size_t AcceleratorPlan::ties(const DesignObjective& objective) const {
  if (finalists.empty()) return 0;
  const double most = objective.value(finalists.front().costs.run) * (1 + search_noise) * (1 + late_gain);
  return static_cast<size_t>(std::count_if(finalists.begin() + 1, finalists.end(), [&](const EvaluatedDesign& own) {
    return objective.value(own.costs.run) <= most;
  }));
}

AcceleratorPlan plan_accelerator(const AcceleratorPlanQuestion& question, const DesignSpace& space,
                                 const std::function<void(const std::string&)>& tell) {
  MappedDesigns evaluator(space, question.work);
  ChoiceGrid grid = space.grid();
  grid.allowed = [&](const DesignPoint& point) { return evaluator.is_allowed(point); };
  check_exhaustive(question, grid);

  const DesignObjective& objective = question.objective;
  AcceleratorPlan plan{
      .designs = grid.size(),
      .base = evaluator.settled_costs_of(space.base().architecture, question.final_tries, question.work.mapper.seed),
      .base_quickly = evaluator.costs_of(space.base().architecture)};
  if (plan.base.run.cycles == 0 || plan.base_quickly.run.cycles == 0) {
    throw InputError(
        {.source = space.base().architecture.name, .expected = "work that fits it: " + plan.base_quickly.fault});
  }
  const std::vector<MethodSeed> wanted = wanted_searches(question);
  for (const MethodSeed& own : wanted) {
    const auto hear = [&](const DesignSearchResult& so_far) {
      if (!tell) return;
      tell(fmt::format(
          "search {} of {}, {}: {} of {} designs evaluated, {} ruled out, best {:.4g} of the base",
          plan.searches.size() + 1, wanted.size(), own.method.name, so_far.designs.size(), question.budget.evaluations,
          so_far.ruled_out,
          so_far.best_so_far.empty() ? 0 : so_far.best_so_far.back() / objective.value(plan.base_quickly.run)));
    };
    plan.searches.push_back(
        search_designs(objective, question.budget, own.method, own.seed, grid, space.base_point(), evaluator, hear));
    plan.evaluations += std::ssize(plan.searches.back().designs);
    plan.ruled_out += plan.searches.back().ruled_out;
  }
  const std::vector<EvaluatedDesign> designs = all_designs(plan.searches);
  plan.effects = knob_effects(objective, designs, grid.choices);
  plan.late_gain = late_gain_of(plan.searches);

  const bool has_frontier = objective.metrics.size() > 1;
  std::vector<EvaluatedDesign> best =
      ranked_designs(has_frontier ? design_frontier(designs, objective) : designs, objective);
  best.resize(std::min(best.size(), has_frontier ? most_of_a_frontier : candidates_per_finalist * question.finalists));
  if (tell) tell(fmt::format("{} designs with up to {} tries of each layer", best.size(), question.final_tries));
  const auto remap = [&](std::vector<EvaluatedDesign>& designs_to_map, uint64_t seed) {
    for_each_on_threads(question.work.mapper.threads, designs_to_map.size(), [&](size_t i) {
      designs_to_map[i].costs =
          evaluator.settled_costs_of(space.design(designs_to_map[i].point).architecture, question.final_tries, seed);
    });
  };
  remap(best, question.work.mapper.seed);
  plan.finalists = ranked_designs(best, objective);
  if (!has_frontier && plan.finalists.size() > question.finalists) plan.finalists.resize(question.finalists);
  // A second search of the same designs shows how much of a figure is luck; the better of the two stays.
  std::vector<EvaluatedDesign> again = plan.finalists;
  remap(again, question.work.mapper.seed + 1);
  for (size_t i = 0; i < again.size(); ++i) {
    if (!again[i].costs.is_usable()) continue;
    const double first = objective.value(plan.finalists[i].costs.run), second = objective.value(again[i].costs.run);
    plan.search_noise = std::max(plan.search_noise, std::abs(first - second) / std::min(first, second));
    if (second >= first) continue;
    for (EvaluatedDesign& own : best) {
      if (own.point == again[i].point) own.costs = again[i].costs;
    }
    plan.finalists[i].costs = again[i].costs;
  }
  plan.finalists = ranked_designs(std::move(plan.finalists), objective);
  if (has_frontier) plan.frontier = design_frontier(best, objective);
  plan.remapped = std::move(best);
  if (const EvaluatedDesign* winner = plan.winner()) {
    plan.winner_least = evaluator.least(winner->point);
    if (!has_frontier) {
      const auto most = static_cast<int64_t>(most_bounds / static_cast<double>(question.work.layers.size()));
      plan.bound = space_bound(objective, grid, evaluator, objective.value(winner->costs.run), most,
                               question.work.mapper.threads);
    }
    plan.undecided = undecided_designs(designs, plan, objective, evaluator);
  }
  return plan;
}

}  // namespace foretoken
