#include "accelerator/mapper/mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "accelerator/mapper/annealing.h"
#include "accelerator/mapper/enumeration.h"
#include "accelerator/mapping_text.h"
#include "base/error.h"
#include "base/parallel.h"

namespace foretoken {
namespace {

constexpr int mapper_chains = 16;
constexpr int64_t first_pass_tries = 300'000;
constexpr int64_t most_enumerated = 2'000'000;  // larger spaces are annealed, however many tries there are
constexpr std::array<CoolingSchedule, 3> mapper_rounds{{{.hot = 0.3, .cold = 0.01},  //
                                                        {.hot = 0.1, .cold = 0.002},
                                                        {.hot = 0.02, .cold = 0.0005}}};

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
        evaluator_(architecture, problem, options.rules),
        scorer_(evaluator_, options.objective, options.costs),
        clock_(options.time_limit_seconds) {
    result_.log2_points = space_.log2_points();
    if (options.costs) return;
    const MappingBound bound = lower_bound(architecture, problem, space_, options.rules);
    result_.bound = least_value(options.objective.first, bound);
    second_bound_ = least_value(options.objective.second, bound);
  }

  MapperResult run() {
    if (!enumerate()) anneal();
    finish();
    return std::move(result_);
  }

 private:
  bool enumerate() {
    std::optional<Enumeration> all = enumerate_mappings(
        space_, scorer_, {.most_tries = std::min(options_.most_tries, most_enumerated), .frontier = options_.frontier},
        clock_);
    if (!all) return false;
    result_.exhausted = all->complete;
    result_.out_of_time = !all->complete;
    result_.tried = all->tried;
    result_.evaluations = all->evaluations;
    best_ = std::move(all->best);
    frontier_ = std::move(all->frontier);
    return true;
  }

  // Passes, each with new chains and twice as long as the one before: a good mapping early, a better one later.
  void anneal() {
    constexpr double gain = 1e-3;  // of the first metric, that counts as one
    int64_t pass_tries = first_pass_tries;
    int idle_passes = 0;
    for (int pass = 0; result_.tried < options_.most_tries && !clock_.expired(); ++pass) {
      const int64_t tries = std::min(pass_tries, options_.most_tries - result_.tried);
      const double before = best_ ? best_->score.first : std::numeric_limits<double>::infinity();
      if (!run_pass(pass, tries) || is_proven()) break;
      idle_passes = best_->score.first > before * (1 - gain) ? idle_passes + 1 : 0;
      if (options_.ends_when_settled && idle_passes == 2) break;
      pass_tries *= 2;
    }
    result_.out_of_time = clock_.expired();
  }

  // Whether any chain found a mapping that fits.
  bool run_pass(int pass, int64_t tries) {
    std::vector<AnnealingChain> chains;
    for (int i = 0; i < mapper_chains; ++i) {
      chains.emplace_back(space_, scorer_, options_.seed, pass * mapper_chains + i, options_.frontier);
    }
    int64_t left = tries;
    for (size_t round = 0; round < mapper_rounds.size() && !clock_.expired(); ++round) {
      std::vector<ScoredPoint> leaders;
      for (const int i : chains_by_score(chains)) leaders.push_back(*chains[i].best());
      if (round > 0 && leaders.empty()) break;
      // The leading quarter goes on, each in several chains.
      leaders.resize(std::min<size_t>(leaders.size(), mapper_chains / 4));
      const int64_t rounds = std::ssize(mapper_rounds) - static_cast<int64_t>(round);
      const int64_t now = (left + rounds - 1) / rounds;  // never none: every pass looks at something
      left -= now;
      run_chains(chains, [&](AnnealingChain& chain, int i) {
        const int64_t end = chain.tried() + now / mapper_chains + (i < now % mapper_chains ? 1 : 0);
        begin(chain, i, pass, end - chain.tried(), leaders);
        chain.run(end - chain.tried(), mapper_rounds[round], clock_);
      });
      report(chains);
    }
    for (const AnnealingChain& chain : chains) {
      result_.tried += chain.tried();
      result_.evaluations += chain.evaluations();
      for (const ScoredPoint& point : chain.frontier().points) frontier_.offer(point);
    }
    return best_.has_value();
  }

  void begin(AnnealingChain& chain, int number, int pass, int64_t most_tries,
             const std::vector<ScoredPoint>& leaders) const {
    const std::vector<Mapping>& starts = options_.starts;
    if (!leaders.empty()) {
      chain.start_from(leaders[number % leaders.size()]);
    } else if (pass == 0 && !starts.empty() && number % 2 == 0) {
      chain.start_at(space_.point_of(starts[number / 2 % starts.size()]), most_tries);
    } else {
      chain.restart(most_tries);
    }
  }

  template <typename Work>
  void run_chains(std::vector<AnnealingChain>& chains, const Work& work) {
    for_each_on_threads(options_.threads, chains.size(), [&](size_t i) { work(chains[i], static_cast<int>(i)); });
  }

  void report(const std::vector<AnnealingChain>& chains) {
    const auto order = chains_by_score(chains);
    if (!order.empty()) {
      const ScoredPoint& leader = *chains[order.front()].best();
      if (!best_ || leader.score < best_->score) best_ = leader;
    }
    if (!options_.progress) return;
    MapperProgress progress{.tried = result_.tried, .bound = result_.bound, .found = best_.has_value()};
    for (const AnnealingChain& chain : chains) progress.tried += chain.tried();
    if (best_) progress.best = best_->score.first;
    options_.progress(progress);
  }

  bool is_proven() const { return best_->score.first <= result_.bound && best_->score.second <= second_bound_; }

  FoundMapping found(const ScoredPoint& point) const {
    FoundMapping own;
    space_.write_mapping(point.point, evaluator_.problem(), own.mapping);
    const std::optional<RunCosts> costs = scorer_.costs_of(own.mapping, own.evaluation);
    ensure(costs.has_value(), "a mapping that was found can be evaluated again");
    own.costs = *costs;
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
    result_.reason = fmt::format("a mapping that fits; none was found in {} tries", result_.tried);
    if (!faults.empty()) result_.reason += fmt::format("; with all loops outermost, {}", fmt::join(faults, "; "));
  }

  const MapperOptions& options_;
  MappingSpace space_;
  MappingEvaluator evaluator_;
  MappingScorer scorer_;
  MapperResult result_;
  std::optional<ScoredPoint> best_;
  MappingFrontier frontier_;
  double second_bound_ = 0;
  SearchClock clock_;
};

}  // namespace

MapperResult search_mappings(const Architecture& architecture, const Problem& problem, const Constraints& constraints,
                             const MapperOptions& options) {
  return MappingSearch(architecture, problem, constraints, options).run();
}

}  // namespace foretoken
