#include "accelerator/mapper/mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <ctime>

#include "accelerator/mapper/annealing.h"
#include "accelerator/mapper/enumeration.h"
#include "base/error.h"
#include "base/parallel.h"

namespace foretoken {
namespace {

constexpr int mapper_chains = 16;
constexpr std::array<CoolingSchedule, 3> mapper_rounds{{{.hot = 0.3, .cold = 0.01},  //
                                                        {.hot = 0.1, .cold = 0.002},
                                                        {.hot = 0.02, .cold = 0.0005}}};

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Chains by score, then by number: the same order for any number of threads.
std::vector<int> chains_by_score(const std::vector<AnnealingChain>& chains) {
  std::vector<int> order;
  for (int i = 0; i < std::ssize(chains); ++i) {
    if (chains[i].best()) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](int i) { return chains[i].best()->score; });
  return order;
}

class MappingSearch {
 public:
  MappingSearch(const Architecture& architecture, const Problem& problem, const Constraints& constraints,
                const MapperOptions& options)
      : options_(options),
        space_(architecture, problem, constraints, options.remainders),
        evaluator_(architecture, problem, options.rules) {
    result_.log2_points = space_.log2_points();
    const MappingBound bound = lower_bound(architecture, problem, space_, options.rules);
    result_.bound = least_value(options.objective.first, bound);
    second_bound_ = least_value(options.objective.second, bound);
  }

  MapperResult run() {
    start_ = cpu_seconds();
    if (!enumerate()) anneal();
    finish();
    return std::move(result_);
  }

 private:
  bool enumerate() {
    std::optional<Enumeration> all = enumerate_mappings(
        space_, evaluator_, options_.objective, {.most_tries = options_.most_tries, .frontier = options_.frontier});
    if (!all) return false;
    result_.exhausted = true;
    result_.tried = all->tried;
    result_.evaluations = all->evaluations;
    best_ = std::move(all->best);
    frontier_ = std::move(all->frontier);
    return true;
  }

  void anneal() {
    std::vector<AnnealingChain> chains;
    for (int i = 0; i < mapper_chains; ++i) {
      chains.emplace_back(space_, evaluator_, options_.objective, options_.seed, i, options_.frontier);
    }
    const int64_t changes = std::max<int64_t>(1, options_.most_tries / mapper_chains / std::ssize(mapper_rounds));
    for (size_t round = 0; round < mapper_rounds.size() && !stop_; ++round) {
      std::vector<ScoredPoint> leaders;
      for (const int i : chains_by_score(chains)) leaders.push_back(*chains[i].best());
      if (round > 0 && leaders.empty()) break;
      // The leading quarter goes on, each in several chains.
      leaders.resize(std::min<size_t>(leaders.size(), mapper_chains / 4));
      run_chains(chains, [&](AnnealingChain& chain, int i) {
        if (round == 0) {
          chain.restart();
        } else {
          chain.start_from(leaders[i % leaders.size()]);
        }
        chain.run(changes, mapper_rounds[round], stop_);
      });
      if (is_proven(chains)) break;
    }
    for (const AnnealingChain& chain : chains) {
      result_.tried += chain.tried();
      result_.evaluations += chain.evaluations();
      for (const ScoredPoint& point : chain.frontier().points) frontier_.offer(point);
    }
    const auto order = chains_by_score(chains);
    if (!order.empty()) best_ = chains[order.front()].best();
  }

  template <typename Work>
  void run_chains(std::vector<AnnealingChain>& chains, const Work& work) {
    std::atomic<int> next = 0;
    run_on_threads(std::max(1U, options_.threads), [&] {
      for (int i = next++; i < std::ssize(chains); i = next++) {
        work(chains[i], i);
        if (options_.time_limit_seconds && cpu_seconds() - start_ > *options_.time_limit_seconds) stop_ = true;
      }
    });
    result_.out_of_time = stop_;
    if (!options_.progress) return;
    MapperProgress progress{.bound = result_.bound};
    for (const AnnealingChain& chain : chains) progress.tried += chain.tried();
    const auto order = chains_by_score(chains);
    progress.found = !order.empty();
    if (progress.found) progress.best = chains[order.front()].best()->score.first;
    options_.progress(progress);
  }

  bool is_proven(const std::vector<AnnealingChain>& chains) const {
    const auto order = chains_by_score(chains);
    if (order.empty()) return false;
    const MappingScore& best = chains[order.front()].best()->score;
    return best.first <= result_.bound && best.second <= second_bound_;
  }

  FoundMapping found(const ScoredPoint& point) const {
    FoundMapping own;
    space_.write_mapping(point.point, evaluator_.problem(), own.mapping);
    ensure(evaluator_.evaluate(own.mapping, own.evaluation), "a mapping that was found can be evaluated again");
    return own;
  }

  void finish() {
    if (!best_) {
      explain_failure();
      return;
    }
    result_.best = found(*best_);
    const double value = best_->score.first;
    ensure(result_.bound <= value * (1 + 1e-9), "no mapping is better than the lower bound");
    if (result_.exhausted) result_.bound = value;
    result_.gap = value > 0 ? std::max(0.0, (value - result_.bound) / value) : 0;
    for (const ScoredPoint& point : frontier_.points) result_.frontier.push_back(found(point));
  }

  void explain_failure() {
    Mapping least;
    MappingPoint point = space_.outermost();
    point.kept = space_.must_keep;
    space_.write_mapping(point, evaluator_.problem(), least);
    const auto faults = mapping_faults(least, evaluator_.architecture(), evaluator_.problem());
    result_.reason = fmt::format("none of {} mappings fits", result_.tried);
    if (!faults.empty()) result_.reason += fmt::format("; with all loops outermost, {}", fmt::join(faults, "; "));
  }

  const MapperOptions& options_;
  MappingSpace space_;
  MappingEvaluator evaluator_;
  MapperResult result_;
  std::optional<ScoredPoint> best_;
  MappingFrontier frontier_;
  double start_ = 0;
  double second_bound_ = 0;
  std::atomic<bool> stop_ = false;
};

}  // namespace

MapperResult search_mappings(const Architecture& architecture, const Problem& problem, const Constraints& constraints,
                             const MapperOptions& options) {
  return MappingSearch(architecture, problem, constraints, options).run();
}

}  // namespace foretoken
