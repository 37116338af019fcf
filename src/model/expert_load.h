// Loads of experts that a benchmark draws from a power law.
#pragma once

#include <cstdint>
#include <vector>

namespace foretoken {

// Tokens of each expert: the E mid-quantiles of the power law, scaled to tokens x top_k, rounded down, the remainder
// handed to the largest fractions, none above `tokens`. The quantiles stand in for random draws, so that the result is
// a function of the shape; load on [1, 0.8 tokens], or on [0.01, 2] when there are fewer pairs than experts.
// That is how rows of such a benchmark are read; a user's tokens are drawn from power_law_popularity.
std::vector<int64_t> power_law_counts(int64_t tokens, int64_t top_k, int64_t experts, double exponent);

}  // namespace foretoken
