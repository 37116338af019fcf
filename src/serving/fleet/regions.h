// Pools in several places: where requests come from, and where they are served.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/simulated_time.h"
#include "serving/requests/request.h"

namespace foretoken {

struct Region {
  std::string name;
  double share = 1;    // of the requests, relative to the others'
  double shift_s = 0;  // its day is so much ahead
};

enum class Spill : uint8_t {
  never,   // requests stay in their region
  queued,  // they leave it when each of its replicas has more than `most_waiting` in its queue
};

struct RegionPolicy {
  Spill spill = Spill::never;
  int64_t most_waiting = 0;
  Picoseconds round_trip = 0;  // between any two regions
};

// Gives the requests of `inner` a region each, drawn in proportion to share x (1 + swing x s), s a sine of the given
// period and the region's shift: each region has its own busy hours within the load that there is.
struct DailyShares {
  double swing = 0;  // 0 to 1
  double period_s = 86400;
};
std::unique_ptr<RequestSource> with_regions(std::unique_ptr<RequestSource> inner, const std::vector<Region>& regions,
                                            const DailyShares& day, uint64_t seed);

}  // namespace foretoken
