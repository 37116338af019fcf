#include "serving/simulation/frontend.h"

#include <algorithm>

namespace foretoken {

Frontend::Frontend(const FrontCosts& costs)
    : costs_(costs),
      takes_time_(costs.latency.value() + costs.request.value() + costs.token.value() > 0),
      latency_(to_picoseconds(costs.latency)),
      piece_(to_picoseconds(costs.piece)) {}

Picoseconds Frontend::through(int64_t input_tokens, Picoseconds now) {
  const Seconds work = costs_.request + costs_.token * static_cast<double>(input_tokens);
  free_ = later(std::max(free_, now), to_picoseconds(work));
  return later(free_, latency_);
}

// After the first step, either it falls behind all the while, or it catches up before the last step ends.
Frontend::Sent Frontend::sent(int64_t pieces, int64_t steps, Picoseconds first, Picoseconds last) {
  const Picoseconds of_first = sent(pieces, first);
  if (steps == 1) return {of_first, of_first};
  if (piece_ == 0) return {of_first, last};
  sender_free_ = std::max(of_first + (steps - 1) * pieces * piece_, last + pieces * piece_);
  return {of_first, sender_free_};
}

}  // namespace foretoken
