#include "plan/accelerator/design_search.h"

#include <algorithm>
#include <limits>

#include "base/parallel.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> logs_of(const DesignObjective& objective, const RunCosts& costs) {
  std::vector<double> logs;
  for (const MappingMetric metric : objective.metrics) logs.push_back(portable_log(metric_value(metric, costs)));
  return logs;
}

class DesignSearch {
 public:
  DesignSearch(const DesignObjective& objective, DesignEvaluator& evaluator, DesignSearcher& searcher)
      : objective_(objective), evaluator_(evaluator), searcher_(searcher) {}

  void evaluate(std::span<const DesignPoint> points) {
    std::vector<JudgedPoint> judged;
    std::vector<DesignPoint> promising;
    for (const DesignPoint& point : points) {
      const auto bound = beaten_bound(point);
      if (bound) {
        ++result.ruled_out;
        judged.push_back({.point = point, .logs = logs_of(objective_, *bound)});
      } else {
        promising.push_back(point);
      }
    }
    const std::vector<DesignCosts> costs = evaluator_.evaluate(promising);
    for (size_t i = 0; i < promising.size(); ++i) {
      JudgedPoint own{.point = promising[i]};
      if (costs[i].is_usable()) {
        own.logs = logs_of(objective_, costs[i].run);
        best_ = std::min(best_, objective_.value(costs[i].run));
      }
      result.designs.push_back({.point = promising[i], .costs = costs[i]});
      result.best_so_far.push_back(best_);
      judged.push_back(std::move(own));
    }
    searcher_.tell(judged);
  }

  DesignSearchResult result;

 private:
  // The bound of a design that no mapping makes better than the best so far. A frontier has no single best.
  std::optional<RunCosts> beaten_bound(const DesignPoint& point) const {
    if (objective_.metrics.size() != 1 || best_ == infinity) return std::nullopt;
    auto bound = evaluator_.least(point);
    if (bound && objective_.value(*bound) < best_) bound.reset();
    return bound;
  }

  const DesignObjective& objective_;
  DesignEvaluator& evaluator_;
  DesignSearcher& searcher_;
  double best_ = infinity;
};

}  // namespace

double DesignObjective::value(const RunCosts& costs) const {
  double product = 1;
  for (const MappingMetric metric : metrics) product *= metric_value(metric, costs);
  return product;
}

std::string DesignObjective::name() const {
  std::string text;
  for (const MappingMetric metric : metrics) text += (text.empty() ? "" : ",") + std::string(metric_name(metric));
  return text;
}

const EvaluatedDesign* DesignSearchResult::best(const DesignObjective& objective) const {
  const EvaluatedDesign* found = nullptr;
  for (const EvaluatedDesign& own : designs) {
    if (!own.costs.is_usable()) continue;
    if (found == nullptr || objective.value(own.costs.run) < objective.value(found->costs.run)) found = &own;
  }
  return found;
}

DesignSearchResult search_designs(const DesignObjective& objective, const DesignBudget& budget,
                                  const SearcherKind& method, uint64_t seed, const ChoiceGrid& grid,
                                  const std::optional<DesignPoint>& base, DesignEvaluator& evaluator,
                                  const std::function<void(const DesignSearchResult&)>& tell) {
  // Bounds are cheap, not free: a search whose designs are all ruled out ends too.
  constexpr size_t most_asked_per_evaluation = 20;
  const std::unique_ptr<DesignSearcher> searcher = method.make(grid, seed);
  DesignSearch search(objective, evaluator, *searcher);
  search.result.method = method.name;
  search.result.seed = seed;
  if (base && grid.allowed(*base)) search.evaluate({&*base, 1});
  size_t asked = 0;
  while (search.result.designs.size() < budget.evaluations && asked < budget.evaluations * most_asked_per_evaluation) {
    const size_t left = budget.evaluations - search.result.designs.size();
    const std::vector<DesignPoint> points = searcher->ask(std::min(budget.round, left));
    if (points.empty()) {
      search.result.exhausted = true;
      break;
    }
    asked += points.size();
    search.evaluate(points);
    if (tell) tell(search.result);
  }
  return std::move(search.result);
}

std::vector<EvaluatedDesign> ranked_designs(std::vector<EvaluatedDesign> designs, const DesignObjective& objective) {
  std::erase_if(designs, [](const EvaluatedDesign& own) { return !own.costs.is_usable(); });
  std::stable_sort(designs.begin(), designs.end(), [&](const EvaluatedDesign& a, const EvaluatedDesign& b) {
    return objective.value(a.costs.run) < objective.value(b.costs.run);
  });
  return designs;
}

std::vector<EvaluatedDesign> design_frontier(std::vector<EvaluatedDesign> designs, const DesignObjective& objective) {
  std::erase_if(designs, [](const EvaluatedDesign& own) { return !own.costs.is_usable(); });
  const auto first = [&](const EvaluatedDesign& own) { return metric_value(objective.metrics.front(), own.costs.run); };
  const auto second = [&](const EvaluatedDesign& own) { return metric_value(objective.metrics.back(), own.costs.run); };
  std::stable_sort(designs.begin(), designs.end(), [&](const EvaluatedDesign& a, const EvaluatedDesign& b) {
    return first(a) != first(b) ? first(a) < first(b) : second(a) < second(b);
  });
  std::vector<EvaluatedDesign> frontier;
  for (EvaluatedDesign& own : designs) {
    if (frontier.empty() || second(own) < second(frontier.back())) frontier.push_back(std::move(own));
  }
  return frontier;
}

std::optional<SpaceBound> space_bound(const DesignObjective& objective, const ChoiceGrid& grid,
                                      const DesignEvaluator& evaluator, double found, int64_t most, unsigned threads) {
  if (grid.size() > static_cast<double>(most)) return std::nullopt;
  std::vector<std::optional<double>> bounds(static_cast<size_t>(grid.size()));
  for_each_on_threads(threads, bounds.size(), [&](size_t i) {
    const DesignPoint point = grid.at(static_cast<int64_t>(i));
    if (!grid.allowed(point)) return;
    if (const auto least = evaluator.least(point)) bounds[i] = objective.value(*least);
  });
  SpaceBound all{.value = infinity};
  for (const std::optional<double>& bound : bounds) {
    if (!bound) continue;
    ++all.designs;
    all.value = std::min(all.value, *bound);
    if (*bound >= found) ++all.no_better;
  }
  return all;
}

}  // namespace foretoken
