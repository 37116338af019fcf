#include "serving/speculation/speculation.h"

#include <algorithm>

#include "base/random.h"

namespace foretoken {
namespace {

uint64_t folded(uint64_t state, int64_t key) {
  state ^= static_cast<uint64_t>(key);
  return splitmix64(state);
}

// In [0, 1).
double unit_interval(uint64_t bits) {
  return static_cast<double>(splitmix64(bits) >> 11U) * 0x1p-53;
}

}  // namespace

Drafts draw_drafts(const Speculation& speculation, int64_t request_id, int64_t output_so_far, int64_t room) {
  const int64_t verified = std::min(speculation.verified_tokens, room);
  if (verified <= 0) return {};
  const uint64_t request = folded(speculation.seed, speculation.same_for_all ? 0 : request_id);
  const int64_t depth = std::min(speculation.draft_tokens, verified);
  return {.verified = verified,
          .accepted = speculation.acceptance.accepted(depth, unit_interval(folded(request, output_so_far)),
                                                      unit_interval(request))};
}

}  // namespace foretoken
