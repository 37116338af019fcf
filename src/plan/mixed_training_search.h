// The fastest plans of one training job on GPUs of several kinds.
#pragma once

#include <vector>

#include "plan/training_search.h"
#include "training/pools/mixed_pools.h"

namespace foretoken {

struct RankedMixedPlan {
  TrainingPlan plan;
  MixedEstimate estimate;
};

struct MixedSearchResult {
  std::vector<RankedMixedPlan> best;  // fastest first, those that fit before all others; never empty
  int64_t tried = 0, too_large = 0;
};

// Tries the plans that are fastest, or need least memory, if all GPUs were of one of the kinds. Each is divided among
// the pools by replicas and by stages. `options.best`: plans to return. InputError where pools can run none of them.
// Leaves the fastest plan in the pools' questions.
MixedSearchResult search_mixed_plans(std::vector<TrainingPool>& pools, const TrainingPlanOptions& options);

}  // namespace foretoken
