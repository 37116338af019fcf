#include "serving/fleet/scaling.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {
namespace {

AutoscalerSettings settings_of_pool(AutoscalerSettings settings, const FleetPool& pool, Seconds cold_start) {
  settings.capacity = pool.capacity;
  settings.cold_start_s = cold_start.value();
  return settings;
}

}  // namespace

PoolScaling::PoolScaling(const AutoscalerSettings& settings, const FleetPool& pool, Seconds cold_start)
    : settings_(settings_of_pool(settings, pool, cold_start)),
      most_(pool.members),
      wanted_(pool.at_start),
      autoscaler_(autoscaler_kind(settings.kind).make(settings_)) {
  ensure(settings.least >= 1 && settings.least <= wanted_ && wanted_ <= most_, "a pool begins within its limits");
  recent_.push_back({.at_s = 0, .replicas = wanted_});
}

void PoolScaling::arrived(int64_t input_tokens, int64_t output_tokens) {
  ++counted_.arrived;
  counted_.input_tokens += input_tokens;
  counted_.output_tokens += output_tokens;
}

void PoolScaling::look(FleetView view) {
  view.interval_s = settings_.interval_s;
  view.arrived = counted_.arrived;
  view.input_tokens = counted_.input_tokens;
  view.output_tokens = counted_.output_tokens;
  counted_ = {};
  const int64_t recommended = std::clamp(autoscaler_->wanted(view), settings_.least, most_);
  while (!recent_.empty() && recent_.back().replicas <= recommended) recent_.pop_back();
  recent_.push_back({.at_s = view.now_s, .replicas = recommended});
  while (recent_.front().at_s < view.now_s - settings_.stabilization_s) recent_.pop_front();
  wanted_ = recent_.front().replicas;
}

}  // namespace foretoken
