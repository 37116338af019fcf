// The flags of memories below the GPUs' KV caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/flags/replica_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "serving/tiers/kv_tier.h"

namespace foretoken {

struct KvTierFlags {
  std::vector<std::string> tiers;  // "kind=host,size=200GiB", the nearest first
  double offloading_gib = 0;
  std::string writes = "write_through", loads = "engine";
  bool prefetch = true, recompute_if_faster = false, swap = false;

  void declare(Options& options);
  bool given() const { return !tiers.empty() || offloading_gib > 0; }
  // Flags of tiers where there are none: InputError.
  void check_use(const Options& options) const;
  // For the replicas of these groups, of which the first have the tiers. InputError where a size or speed is neither
  // given nor known, or the replicas differ.
  KvTierSettings settings(const std::vector<ReplicaGroup>& groups, bool separate_pools, const Library& library) const;

 private:
  KvTier read_tier(const std::string& text, const ReplicaGroup& group, const std::optional<Node>& node,
                   double kv_bytes_per_token) const;
  TierLoads load_way(const std::string& scheduler) const;
};

}  // namespace foretoken
