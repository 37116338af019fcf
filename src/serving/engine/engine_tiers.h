// Memories below the KV cache of an engine, as it uses them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "hardware/node.h"
#include "serving/engine/engine_builder.h"
#include "serving/tiers/kv_tier.h"

namespace foretoken {

// How steps of the scheduler wait for what they load, where nobody says.
TierLoads usual_tier_loads(std::string_view scheduler);

// Of the group's replicas, without a tier yet. InputError, which names the field `kv_tier`, where its scheduler finds
// no prefixes or its cache does not grow with a sequence.
KvTierSettings tier_settings(const ReplicaGroup& group, const std::optional<Node>& node);

// A replica has such a link for each of its devices where kinds say so.
TierSpeed of_all_devices(TierSpeed speed, const KvTierKind& kind, const ReplicaGroup& group);

// Host memory that every one of so many servers keeps for itself. InputError where the way to the host is not known.
KvTierSettings server_memory_tier(const ReplicaGroup& group, int64_t servers, Bytes host_memory);

}  // namespace foretoken
