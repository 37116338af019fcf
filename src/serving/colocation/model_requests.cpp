#include "serving/colocation/model_requests.h"

#include <utility>

#include "base/random.h"
#include "serving/load/drawn_fields.h"

namespace foretoken {

std::unique_ptr<RequestSource> with_models(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares,
                                           uint64_t seed) {
  return with_drawn_by_session(std::move(inner), seed, "models",
                               [index = WeightedIndex(shares)](Request& request, RandomStream& random) {
                                 request.model = static_cast<int32_t>(index.draw(random));
                               });
}

}  // namespace foretoken
