// What drafting achieved, counted as vLLM counts it (v1/spec_decode/metrics.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foretoken {

struct SpeculationCounts {
  int64_t drafts = 0;           // verifications: one for each decode of a step
  int64_t draft_tokens = 0;     // that were verified
  int64_t accepted_tokens = 0;  // of these
  std::vector<int64_t> accepted_by_position;

  void add(int64_t verified, int64_t accepted);
  double acceptance_rate() const;               // accepted over verified drafts; 0 without drafts
  double acceptance_length() const;             // tokens of a verification, the one that needs no draft included
  double rate_at_position(size_t index) const;  // verifications that accepted all drafts up to there
};

}  // namespace foretoken
