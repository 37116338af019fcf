// Requests of several urgencies, for schedulers that look at it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

// Gives the requests of `inner` a priority each: 0 to the first share of them, 1 to the second, and so on, drawn. Lower
// goes first. InputError unless the shares are not negative and one is above zero; only their ratios count.
std::unique_ptr<RequestSource> with_priorities(std::unique_ptr<RequestSource> inner, const std::vector<double>& shares,
                                               uint64_t seed);

}  // namespace foretoken
