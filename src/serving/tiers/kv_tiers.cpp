#include "serving/tiers/kv_tiers.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace foretoken {

KvTiers::KvTiers(const KvTierSettings& settings) : settings_(settings) {
  ensure(!settings_.node_of_replica.empty(), "tiers have a replica");
  const std::vector<int64_t>& nodes = settings_.node_of_replica;
  const size_t node_count = static_cast<size_t>(*std::max_element(nodes.begin(), nodes.end())) + 1;
  const auto copies = [&](TierScope scope) {
    return scope == TierScope::replica ? nodes.size() : scope == TierScope::node ? node_count : 1;
  };
  usage_.kv_bytes_per_token = settings_.kv_bytes_per_token;
  for (const KvTier& tier : settings_.tiers) {
    ensure(tier.kind != nullptr, "a tier is of some kind");
    const size_t links = copies(tier.kind->link);
    const TierScope store = tier.is_own ? TierScope::replica : tier.kind->store;
    tiers_.push_back({.store = store,
                      .link = tier.kind->link,
                      .stores = std::vector<TierStore>(copies(store), TierStore(tier.capacity_tokens)),
                      .reads = std::vector<TierLink>(links, TierLink(tier.read, tier.latency)),
                      .writes = std::vector<TierLink>(links, TierLink(tier.write, tier.latency))});
    usage_.tiers.push_back({.kind = std::string(tier.kind->name)});
  }
}

size_t KvTiers::place(TierScope scope, size_t replica) const {
  if (scope == TierScope::replica) return replica;
  return scope == TierScope::node ? static_cast<size_t>(settings_.node_of_replica[replica]) : 0;
}

KvTierUsage KvTiers::final_usage() const {
  KvTierUsage usage = usage_;
  for (size_t i = 0; i < tiers_.size(); ++i) {
    for (const TierStore& store : tiers_[i].stores) usage.tiers[i].most_tokens += store.most_tokens();
    for (const TierLink& link : tiers_[i].reads) usage.tiers[i].read_busy += link.busy();
    for (const TierLink& link : tiers_[i].writes) usage.tiers[i].write_busy += link.busy();
  }
  return usage;
}

}  // namespace foretoken
