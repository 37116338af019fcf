// Closed forms that no simulation of a layout can beat: what they rule out is never simulated.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/serving/layout_engines.h"

namespace foretoken {

// Stores keep the numbers: new ones come last.
enum class PruneReason : uint8_t {
  no_room,           // weights, activations and one sequence of the longest length do not fit
  clash,             // its limits do not go together, or a drafter finds no room
  cache_too_small,   // more requests than may fail are longer than the KV cache
  slow_decode,       // the decode step of a single sequence breaks the TPOT limit
  slow_prefill,      // the prompt alone breaks the TTFT limit
  slow_answer,       // all steps of a request alone break the E2E limit
  too_few_requests,  // cannot serve the rate asked for, however long the queue; a search says so, not judge_layout
  runs_out           // of memory while it starts: StartFailure::runs_out
};
inline constexpr size_t prune_reasons = 8;
std::string_view prune_reason_text(PruneReason reason);

// What keeps a layout below its bound of throughput.
struct LoadShape {
  double prompt_share = 0;  // of an engine's time at its bound, what prompts alone take; 0 of separate pools
  double ttft_slack = 1;    // of the TTFT limit, what a request alone leaves for waiting
  double fresh_share = 1;   // of the prompts' tokens, what no earlier prompt began with: the bound computes no others
  // Of the bound, what ranks in lock step reach whose prompts never share a step; 1 of other engines.
  double alone_share = 1;
};

struct LayoutJudgement {
  std::optional<PruneReason> pruned;
  double most_requests_per_s = 0;  // of the whole layout; 0 where it does not start
  LoadShape shape;
  std::vector<double> alone_ms;  // of each limit: at least what a request alone takes; empty where it does not start
  // Of the engines' limits, as far as a run within the latency limits can reach them. Layouts of equal engines with
  // equal ones run alike.
  std::vector<int64_t> reachable;
  // Blocks of their caches that such a run fills; of the engine that decodes first. Other limits leave more or less
  // memory for them.
  std::vector<int64_t> filled_blocks;
};

// The same whatever rate is asked for. Lower bounds of latencies are those of requests that run alone, at the
// percentile that the limit is about: a request in company waits longer. The bound of throughput is that of mean
// requests in steady state (serving/fleet/replica_capacity.h), with caches that hold the mean occupancy rather than
// whole sequences. All have 5% to spare (throughput 15%), for step times that are not quite monotone in the batch.
LayoutJudgement judge_layout(const ServingQuestion& question, const Traffic& traffic, const ServingLayout& layout,
                             const LayoutEngines& engines);

// What layouts have in common that differ only in how many replicas they have.
struct EngineBounds {
  struct Pool {
    double requests_per_s = 0;  // of one rank, at the most
    int64_t ranks = 1;          // of a replica, each with its own queue
    int64_t seats = 0;          // sequences of a step, at the most
    int64_t step_tokens = 0;    // its limit of tokens, as far as those sequences fill it
    int64_t blocks = 0;         // of its cache, as far as runs fill it
  };
  std::optional<PruneReason> pruned;
  std::vector<double> alone_ms;
  LoadShape shape;
  bool prefixes_fit = false;  // all that requests share, beside the sequences that run: no memory below could help
  Pool pool, decode;
};
EngineBounds engine_bounds(const ServingQuestion& question, const Traffic& traffic, const LayoutEngines& engines);
LayoutJudgement judge_layout(const EngineBounds& bounds, const ServingLayout& layout);

// Of a layout's bound (LayoutJudgement::most_requests_per_s), what simulations of such layouts sustain: usually, and in
// nine of ten cases. Pools that wait for each other and stages with bubbles reach less; so do engines whose time goes
// into prompts, since long steps of them delay the tokens of all others. Prompts of ranks in lock step seldom come
// together, and each stops all ranks. Requests may wait as long as the TTFT limit leaves, and prefixes that the cache
// lost are computed again: at worst all of them.
struct ReachedShare {
  double usual = 0, low = 0, high = 0;
};
ReachedShare usually_reached(const ServingLayout& layout, const LoadShape& shape);

}  // namespace foretoken
