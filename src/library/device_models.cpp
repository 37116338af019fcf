#include "library/device_models.h"

#include <fmt/format.h>

#include "network/rank_places.h"

namespace foretoken {

std::string plan_key(const ParallelPlan& plan) {
  return fmt::format("{} {} {} {} {} {} {} {}", plan.tensor, plan.pipeline, plan.data, plan.expert, plan.context,
                     plan.sequence, static_cast<int>(plan.exchange), static_cast<int>(plan.exchange_kernels));
}

std::string device_models_key(std::string_view device, const ParallelPlan& plan, const PlacementSpec& placement) {
  return fmt::format("{} | {} | {}", device, plan_key(plan), placement_key(placement));
}

}  // namespace foretoken
