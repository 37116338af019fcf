// Speculative decoding as a scheduler sees it: decodes verify drafted tokens, and some of them are accepted.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/speculation/acceptance.h"

namespace foretoken {

struct Speculation {
  int64_t draft_tokens = 0;      // depth: the most that one step can accept; 0 = no speculation
  int64_t verified_tokens = 0;   // drafts that a step computes: more than draft_tokens where they form a tree
  int64_t lookahead_tokens = 0;  // cache slots beyond those, where a drafter with a cache of its own writes ahead
  int64_t most_sequences = 0;    // nothing is drafted while more are running; 0 = no limit
  int64_t draft_context = 0;     // most tokens of a sequence that the drafter reads; 0 = all
  Acceptance acceptance;         // of at least draft_tokens positions
  std::vector<Acceptance> unknown_acceptance = {};  // low and high of its 90% interval; empty = it is known
  // All requests accept as much at the same place of their outputs: SGLang's simulated acceptance is drawn once for a
  // whole step, so that requests of equal lengths stay together.
  bool same_for_all = false;
  uint64_t seed = 0;

  // Slots of cache that a decode needs beyond its own token.
  int64_t slots() const { return verified_tokens + lookahead_tokens; }
};

// Drafts of one decode: `verified` are computed with its own token, of which the first `accepted` of one chain stand.
struct Drafts {
  int64_t verified = 0;
  int64_t accepted = 0;
};

// What a decode verifies when the step has room for `room` drafts. The draw depends on the seed, the request (unless
// all are the same) and the place in its output alone: the same luck whatever else runs, and however fast steps are.
Drafts draw_drafts(const Speculation& speculation, int64_t request_id, int64_t output_so_far, int64_t room);

}  // namespace foretoken
