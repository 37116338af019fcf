#include "serving/load/priorities.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace foretoken {
namespace {

class PrioritySource : public RequestSource {
 public:
  PrioritySource(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares, uint64_t seed)
      : inner_(std::move(inner)), random_(seed, "priorities") {
    double sum = 0;
    for (const double share : shares) {
      if (!(share >= 0 && share <= 1e12)) fail();
      sum += share;
      up_to_.push_back(sum);
    }
    if (sum <= 0) fail();
  }

  std::optional<Picoseconds> next_arrival() override { return inner_->next_arrival(); }

  Request next() override {
    Request request = inner_->next();
    const double drawn = random_.uniform() * up_to_.back();
    const auto above = std::upper_bound(up_to_.begin(), up_to_.end() - 1, drawn);
    request.priority = static_cast<int32_t>(above - up_to_.begin());
    return request;
  }

  void ended(int64_t id, Picoseconds when) override { inner_->ended(id, when); }
  void rejected(int64_t id, Picoseconds when) override { inner_->rejected(id, when); }

 private:
  [[noreturn]] static void fail() {
    throw InputError(
        {.source = "--priority-shares", .expected = "shares of at least 0, one of them above 0, as in 0.1,0.9"});
  }

  std::unique_ptr<RequestSource> inner_;
  RandomStream random_;
  std::vector<double> up_to_;  // sum of the shares up to each priority
};

}  // namespace

std::unique_ptr<RequestSource> with_priorities(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares,
                                               uint64_t seed) {
  return std::make_unique<PrioritySource>(std::move(inner), shares, seed);
}

}  // namespace foretoken
