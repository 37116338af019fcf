// Closed forms that no simulation of a layout can beat: what they rule out is never simulated.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plan/serving/layout_engines.h"

namespace foretoken {

enum class PruneReason : uint8_t {
  does_not_start,   // weights, activations and one sequence of the longest length do not fit
  cache_too_small,  // more requests than may fail are longer than the KV cache
  slow_decode,      // the decode step of a single sequence breaks the TPOT limit
  slow_prefill,     // the prompt alone breaks the TTFT limit
  slow_answer,      // all steps of a request alone break the E2E limit
  too_few_requests  // cannot serve the rate asked for, however long the queue
};
inline constexpr size_t prune_reasons = 6;
std::string_view prune_reason_text(PruneReason reason);

struct LayoutJudgement {
  std::optional<PruneReason> pruned;
  double most_requests_per_s = 0;  // of the whole layout; 0 where it does not start
};

// Lower bounds of latencies are those of requests that run alone, at the percentile that the limit is about: a request
// in company waits longer. The bound of throughput is that of mean requests in steady state
// (serving/fleet/replica_capacity.h), with caches that hold the mean occupancy rather than whole sequences. All have 5%
// to spare (throughput 15%), for step times that are not quite monotone in the batch.
LayoutJudgement judge_layout(const ServingQuestion& question, const Traffic& traffic, const ServingLayout& layout,
                             const std::optional<LayoutEngines>& engines);

}  // namespace foretoken
