#include "serving/simulation/engines.h"

namespace foretoken {

Engines::Engines(const SimulationConfig& config, EngineListener& listener)
    : Component(EventOrder::engines),
      config_(config),
      listener_(&listener),
      tiers_(config.kv_tiers ? std::make_optional<KvTiers>(*config.kv_tiers) : std::nullopt),
      events_(config.replicas.size()) {}

void Engines::add(const ReplicaConfig& replica, RunObserver& observer, bool has_tiers) {
  KvTiers* tiers = has_tiers && tiers_ ? &*tiers_ : nullptr;
  replicas_.emplace_back(static_cast<int32_t>(replicas_.size()), replica, config_, observer, tiers);
}

void Engines::add_all(RunObserver& observer) {
  for (const ReplicaConfig& replica : config_.replicas) add(replica, observer, true);
}

void Engines::advance(Picoseconds now) {
  const size_t replica = events_.replica();
  replicas_[replica].advance(now);
  listener_->changed(replica, now);
}

KvTierUsage Engines::kv_tier_usage() const {
  return tiers_ ? tiers_->final_usage() : KvTierUsage{};
}

SimulationTotals Engines::final_totals() const {
  SimulationTotals sum;
  for (const Replica& replica : replicas_) {
    sum.add(replica.totals());
    replica.check_ended();
  }
  sum.kv_tiers = kv_tier_usage();
  return sum;
}

}  // namespace foretoken
