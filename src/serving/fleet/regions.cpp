#include "serving/fleet/regions.h"

#include <utility>

#include "base/random.h"
#include "serving/load/arrivals.h"

namespace foretoken {
namespace {

class RegionSource final : public RequestSource {
 public:
  RegionSource(std::unique_ptr<RequestSource> inner, const std::vector<Region>& regions, const DailyShares& day,
               uint64_t seed)
      : inner_(std::move(inner)), regions_(regions), day_(day), random_(seed, "regions") {}

  std::optional<Picoseconds> next_arrival() override { return inner_->next_arrival(); }

  Request next() override {
    Request request = inner_->next();
    weights_.clear();
    for (const Region& region : regions_) {
      const double turns = (to_seconds(request.arrival).value() + region.shift_s) / day_.period_s;
      weights_.push_back(region.share * (1 + day_.swing * sine_of_turns(turns)));
    }
    request.region = static_cast<int32_t>(WeightedIndex(weights_).draw(random_));
    return request;
  }

  void ended(int64_t id, Picoseconds when) override { inner_->ended(id, when); }
  void rejected(int64_t id, Picoseconds when) override { inner_->rejected(id, when); }

 private:
  std::unique_ptr<RequestSource> inner_;
  std::vector<Region> regions_;
  DailyShares day_;
  RandomStream random_;
  std::vector<double> weights_;
};

}  // namespace

std::unique_ptr<RequestSource> with_regions(std::unique_ptr<RequestSource> inner, const std::vector<Region>& regions,
                                            const DailyShares& day, uint64_t seed) {
  return std::make_unique<RegionSource>(std::move(inner), regions, day, seed);
}

}  // namespace foretoken
