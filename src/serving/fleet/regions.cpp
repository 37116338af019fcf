#include "serving/fleet/regions.h"

#include <utility>

#include "base/random.h"
#include "serving/load/arrivals.h"
#include "serving/load/drawn_fields.h"

namespace foretoken {
std::unique_ptr<RequestSource> with_regions(std::unique_ptr<RequestSource> inner, const std::vector<Region>& regions,
                                            const DailyShares& day, uint64_t seed) {
  const auto draw = [regions, day](Request& request, RandomStream& random) {
    std::vector<double> weights;
    for (const Region& region : regions) {
      const double turns = (to_seconds(request.arrival).value() + region.shift_s) / day.period_s;
      weights.push_back(region.share * (1 + day.swing * sine_of_turns(turns)));
    }
    request.region = static_cast<int32_t>(WeightedIndex(weights).draw(random));
  };
  return with_drawn_by_session(std::move(inner), seed, "regions", draw);
}

}  // namespace foretoken
