#include "serving/speculation/speculation_counts.h"

namespace foretoken {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

void SpeculationCounts::add(int64_t verified, int64_t accepted) {
  ++drafts;
  draft_tokens += verified;
  accepted_tokens += accepted;
  if (static_cast<int64_t>(accepted_by_position.size()) < accepted) {
    accepted_by_position.resize(static_cast<size_t>(accepted));
  }
  for (int64_t i = 0; i < accepted; ++i) ++accepted_by_position[static_cast<size_t>(i)];
}

double SpeculationCounts::acceptance_rate() const {
  return ratio(accepted_tokens, draft_tokens);
}

double SpeculationCounts::acceptance_length() const {
  return 1 + ratio(accepted_tokens, drafts);
}

double SpeculationCounts::rate_at_position(size_t index) const {
  return ratio(accepted_by_position[index], drafts);
}

}  // namespace foretoken
