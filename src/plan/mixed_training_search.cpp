#include "plan/mixed_training_search.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "plan/megatron_flags.h"

namespace foretoken {
namespace {

// Plans of each kind of GPU that are divided among the pools.
constexpr size_t most_of_kind = 24;

// Stages of pools have one chunk of layers each, as many as suits them.
TrainingPlan with_whole_stages(TrainingPlan plan) {
  plan.schedule = "1f1b";
  plan.virtual_stages = 1;
  plan.layout.clear();
  return plan;
}

class MixedSearch {
 public:
  explicit MixedSearch(std::vector<TrainingPool>& pools) : pools_(pools) {}

  MixedSearchResult run(const TrainingPlanOptions& options) {
    for (const TrainingPlan& plan : candidates(options)) {
      try_plan(plan, PoolAxis::data);
      if (plan.parallel.pipeline > 1) try_plan(with_whole_stages(plan), PoolAxis::pipeline);
    }
    ensure(options.best > 0, "a search keeps at least one plan");
    ensure(!result_.best.empty() || refusal_.has_value(), "each kind of GPU has a plan to try");
    if (result_.best.empty()) throw InputError(refusal_->problem());
    std::stable_sort(result_.best.begin(), result_.best.end(), [](const RankedMixedPlan& a, const RankedMixedPlan& b) {
      return std::tuple(!a.estimate.fits, a.estimate.seconds.value) <
             std::tuple(!b.estimate.fits, b.estimate.seconds.value);
    });
    if (result_.best.size() > options.best) result_.best.resize(options.best);
    for (TrainingPool& pool : pools_) pool.question.plan = result_.best.front().plan;
    return std::move(result_);
  }

 private:
  std::vector<TrainingPlan> candidates(const TrainingPlanOptions& options) {
    std::vector<TrainingPlan> plans;
    std::set<std::string> seen;
    const auto take = [&](const TrainingPlan& plan) {
      if (seen.insert(megatron_flags(plan)).second) plans.push_back(plan);
    };
    for (const TrainingPool& pool : pools_) {
      TrainingPlanOptions of_kind = options;
      of_kind.best = most_of_kind;
      try {
        const TrainingSearchResult found = plan_training(pool.question, *pool.machine, of_kind);
        for (const RankedPlan& one : found.best) take(one.plan);
        for (const RankedPlan& one : found.frontier) take(one.plan);
      } catch (const NoTrainingPlanFits& error) {
        take(error.nearest().plan);
      }
    }
    return plans;
  }

  void try_plan(const TrainingPlan& plan, PoolAxis axis) {
    for (TrainingPool& pool : pools_) pool.question.plan = plan;
    try {
      MixedEstimate estimate = estimate_mixed(pools_, axis);
      ++result_.tried;
      if (!estimate.fits) ++result_.too_large;
      result_.best.push_back({.plan = plan, .estimate = std::move(estimate)});
    } catch (const InputError& error) {
      if (!refusal_) refusal_ = error;  // replicas or stages that no pool has whole
    }
  }

  std::vector<TrainingPool>& pools_;
  MixedSearchResult result_;
  std::optional<InputError> refusal_;
};

}  // namespace

MixedSearchResult search_mixed_plans(std::vector<TrainingPool>& pools, const TrainingPlanOptions& options) {
  return MixedSearch(pools).run(options);
}

}  // namespace foretoken
