// What the tiers below the GPUs' KV caches did in a serving run.
#pragma once

#include <string>

#include "base/json.h"
#include "serving/tiers/kv_tier_usage.h"

namespace foretoken {

// `prompt_tokens` of the run are what hits are a share of; `cached_tokens` of them were found, here or on a GPU.
std::string kv_tiers_text(const KvTierUsage& usage, int64_t prompt_tokens, int64_t cached_tokens);
Json kv_tiers_json(const KvTierUsage& usage, int64_t prompt_tokens, int64_t cached_tokens);

}  // namespace foretoken
