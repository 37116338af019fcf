#include "serving/load/priorities.h"

#include <utility>

#include "base/error.h"
#include "serving/load/drawn_fields.h"

namespace foretoken {
namespace {

[[noreturn]] void fail() {
  throw InputError(
      {.field = "priority_shares", .expected = "shares of at least 0, with at least one above 0, for example 0.1,0.9"});
}

void check(const std::vector<double>& shares) {
  double sum = 0;
  for (const double share : shares) {
    if (!(share >= 0 && share <= 1e12)) fail();
    sum += share;
  }
  if (sum <= 0) fail();
}

}  // namespace

std::unique_ptr<RequestSource> with_priorities(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares,
                                               uint64_t seed) {
  check(shares);
  return with_drawn(std::move(inner), seed, "priorities",
                    [index = WeightedIndex(shares)](Request& request, RandomStream& random) {
                      request.priority = static_cast<int32_t>(index.draw(random));
                    });
}

}  // namespace foretoken
