// How tokens fell on experts in rows of measurements that say less than what was timed.
#pragma once

#include <string_view>

#include "model/shapes.h"

namespace foretoken {

// vLLM's benchmarks choose experts for each token, evenly or by a power law, and hand them as logits to the router of
// the model. DeepSeek-V3's keeps 4 of 8 groups of experts: a token's choices in groups that it drops are lost, and the
// first experts of the groups that it keeps, all equally likely, take their place. Those are mostly on the first rank,
// which is the one that is timed: of even choices it gets 4 + 8/ep pairs of each token instead of 8/ep, and half of the
// experts get none. `kernel`: what the row calls it; other frameworks' benchmarks choose experts themselves.
void route_as_benchmarked(MoeShape& shape, std::string_view kernel);

}  // namespace foretoken
