// The tiers of a whole run: their stores, the links to them, and what was moved.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/tiers/kv_tier.h"
#include "serving/tiers/kv_tier_usage.h"
#include "serving/tiers/tier_link.h"
#include "serving/tiers/tier_store.h"

namespace foretoken {

class KvTiers {
 public:
  explicit KvTiers(const KvTierSettings& settings);

  const KvTierSettings& settings() const { return settings_; }
  size_t count() const { return tiers_.size(); }
  // As a replica sees them.
  TierStore& store(size_t tier, size_t replica) { return tiers_[tier].stores[place(tiers_[tier].store, replica)]; }
  TierLink& read_link(size_t tier, size_t replica) { return tiers_[tier].reads[place(tiers_[tier].link, replica)]; }
  TierLink& write_link(size_t tier, size_t replica) { return tiers_[tier].writes[place(tiers_[tier].link, replica)]; }
  double bytes(int64_t tokens) const { return static_cast<double>(tokens) * settings_.kv_bytes_per_token; }

  KvTierUse& use(size_t tier) { return usage_.tiers[tier]; }
  KvTierUsage& usage() { return usage_; }
  // With what stores and links have counted themselves.
  KvTierUsage final_usage() const;

 private:
  struct Tier {
    TierScope store = TierScope::replica, link = TierScope::replica;
    std::vector<TierStore> stores;
    std::vector<TierLink> reads, writes;
  };
  size_t place(TierScope scope, size_t replica) const;

  KvTierSettings settings_;
  std::vector<Tier> tiers_;
  KvTierUsage usage_;
};

}  // namespace foretoken
