// Requests made up from an arrival process, lengths and shared prefixes.
#pragma once

#include <cstdint>
#include <memory>

#include "serving/load/arrivals.h"
#include "serving/load/lengths.h"
#include "serving/requests/request.h"

namespace foretoken {

// Each prompt begins with one of `count` texts of `tokens` tokens; they come on top of the drawn length.
struct PrefixSettings {
  int64_t tokens = 0;
  int64_t count = 1;
  // Each is that of as many prompts, give or take one, in random order, as vLLM's prefix_repetition makes them
  // (vllm/benchmarks/datasets). Else every prompt draws its own.
  bool equally_often = false;
};

// The longest context there is, and few enough that every block has a number of its own.
inline constexpr int64_t most_prefix_tokens = 10'000'000, most_prefixes = 1'000'000'000;
// InputError names the flag.
void check_prefixes(const PrefixSettings& settings);

// Tokens that a number of Request::prefix_blocks stands for in made-up load: the finest block of common engines.
inline constexpr int32_t made_up_block_tokens = 16;

// Open loop: `arrivals.count` requests.
std::unique_ptr<RequestSource> synthetic_load(const ArrivalSettings& arrivals, std::unique_ptr<LengthSource> lengths,
                                              const PrefixSettings& prefix, uint64_t seed);

}  // namespace foretoken
