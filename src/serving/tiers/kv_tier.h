// Memories below the GPU's paged KV cache: what kinds there are, how large and fast one is, and how engines use them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware/node.h"

namespace foretoken {

// Who has one in common: a replica its own, the replicas of a node, or all.
enum class TierScope : uint8_t { replica, node, all };

// The way to a tier: of one device where a replica has a link for each of its own, else of the node.
struct TierSpeed {
  BytesPerSecond read, write;
  Seconds latency;  // of each transfer, once
};

struct KvTierKind {
  std::string_view name;  // what users type
  std::string_view summary;
  TierScope store;       // what is kept there
  TierScope link;        // the way there, with its queue
  bool link_of_devices;  // a replica has one such link for each of its devices
  // Where nobody says; nothing where the device's or the node's links are not known.
  std::optional<TierSpeed> (*usual_speed)(const Device& device, const std::optional<Node>& node);
};
std::span<const KvTierKind> kv_tier_kinds();
std::vector<std::string> kv_tier_kind_names();
const KvTierKind& kv_tier_kind(std::string_view name);  // InputError suggests the nearest

struct KvTier {
  const KvTierKind* kind = nullptr;
  int64_t capacity_tokens = 0;  // of one store
  BytesPerSecond read, write;   // of one link
  Seconds latency;
  bool is_own = false;  // every server has such a store for itself, also where kinds share one in a node
};

// When blocks are written to the tiers.
//   back     when the GPU reuses them; what a tier has no room for moves to the next
//   through  as soon as they are computed, to every tier; what a tier has no room for is dropped
//   selective  as through, once a second request has found them on the GPU (HiCache's write_through_selective)
enum class TierWrites : uint8_t { back, through, selective };
inline constexpr std::string_view tier_write_names[] = {"write_back", "write_through", "write_through_selective"};

// How a step waits for what it loads.
//   blocking   it begins when all is there
//   by_layer   a layer begins when its own part is there: the rest moves while it computes (HiCache)
//   apart      none waits: a request takes blocks, and is chosen once all is there (vLLM's connectors). Of schedulers
//              that can (OptionsRead::loads_apart); others take it for by_layer
enum class TierLoads : uint8_t { blocking, by_layer, apart };
inline constexpr std::string_view tier_load_names[] = {"blocking", "by_layer", "apart"};

inline constexpr int64_t unlimited_tokens = std::numeric_limits<int64_t>::max();

struct KvTierSettings {
  std::vector<KvTier> tiers;             // the nearest first
  std::vector<int64_t> node_of_replica;  // those on one node share what kinds say
  double kv_bytes_per_token = 0;         // of all layers and heads
  int64_t layers = 1;
  TierWrites writes = TierWrites::through;
  TierLoads loads = TierLoads::by_layer;
  bool prefetch = true;              // a request that begins to wait has what lies deeper brought into the first tier
  bool recompute_if_faster = false;  // what would take longer to load than to compute is computed
  bool swap = false;                 // preempted sequences go to the first tier, and come back from there
};

}  // namespace foretoken
