// Passages of a document store that a retrieval puts into prompts.
#pragma once

#include <cstdint>
#include <memory>

#include "serving/requests/request.h"

namespace foretoken {

struct PassageSettings {
  int64_t per_request = 0;
  int64_t tokens = 256;        // of each
  int64_t corpus = 1'000'000;  // different passages that are ever found
  double skew = 0;             // of their popularity: the r-th is found in proportion to r^-skew (Zipf)
  bool popular_first = false;  // sorted by popularity, so that more prompts begin alike; else in the order found
};

// Few enough that each has its own numbers, and its popularity 8 bytes.
inline constexpr int64_t most_passages = 10'000'000, most_passages_of_request = 1000, most_passage_tokens = 100'000;
// InputError names the flag.
void check_passages(const PassageSettings& settings);

// The prompts of `inner` with that many different passages in front of what is their own, behind a prefix they share.
// Prefix blocks tell which passages are the same. InputError for prompts whose blocks have numbers of another size:
// those of a trace.
std::unique_ptr<RequestSource> with_passages(std::unique_ptr<RequestSource> inner, const PassageSettings& settings,
                                             uint64_t seed);

}  // namespace foretoken
