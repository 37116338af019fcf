#include "serving/load/priorities.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "serving/load/changed_source.h"

namespace foretoken {
namespace {

class PrioritySource final : public ChangedSource {
 public:
  PrioritySource(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares, uint64_t seed)
      : ChangedSource(std::move(inner)), random_(seed, "priorities") {
    double sum = 0;
    for (const double share : shares) {
      if (!(share >= 0 && share <= 1e12)) fail();
      sum += share;
      up_to_.push_back(sum);
    }
    if (sum <= 0) fail();
  }

 protected:
  void change(Request& request) override {
    const double drawn = random_.uniform() * up_to_.back();
    const auto above = std::upper_bound(up_to_.begin(), up_to_.end() - 1, drawn);
    request.priority = static_cast<int32_t>(above - up_to_.begin());
  }

 private:
  [[noreturn]] static void fail() {
    throw InputError(
        {.source = "--priority-shares", .expected = "shares of at least 0, one of them above 0, as in 0.1,0.9"});
  }

  RandomStream random_;
  std::vector<double> up_to_;  // sum of the shares up to each priority
};

}  // namespace

std::unique_ptr<RequestSource> with_priorities(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares,
                                               uint64_t seed) {
  return std::make_unique<PrioritySource>(std::move(inner), shares, seed);
}

}  // namespace foretoken
