// Requests for several models.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

// Gives the requests of `inner` a model each, drawn: 0 to the first share of them, and so on. All turns of a
// conversation have the same. Shares are at least 0, one of them above 0; only their ratios count.
std::unique_ptr<RequestSource> with_models(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares,
                                           uint64_t seed);

}  // namespace foretoken
