#include "serving/simulation/frontend.h"

#include <algorithm>

namespace foretoken {

Frontend::Frontend(const FrontCosts& costs)
    : costs_(costs),
      takes_time_(costs.latency.value() + costs.request.value() + costs.token.value() > 0),
      latency_(to_picoseconds(costs.latency)) {}

Picoseconds Frontend::through(int64_t input_tokens, Picoseconds now) {
  const Seconds work = costs_.request + costs_.token * static_cast<double>(input_tokens);
  free_ = later(std::max(free_, now), to_picoseconds(work));
  return later(free_, latency_);
}

}  // namespace foretoken
