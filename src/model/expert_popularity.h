// How unevenly tokens choose experts, and the copies of busy ones that even it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/csv.h"
#include "model/work.h"

namespace foretoken {

constexpr int64_t most_experts_of_a_layer = 1 << 16;  // that a popularity can tell apart

struct ExpertPopularity {
  std::vector<double> shares;  // of all routed copies, by expert: they add up to 1
  // More copies of busy experts (EPLB): one at a time to the expert whose copies are the busiest, then all copies to
  // ranks, the busiest first to the rank with the least so far.
  int64_t redundant = 0;
  // Given: mean load of a rank over that of the busiest, as engines report it; experts are alike otherwise.
  std::optional<double> balancedness = std::nullopt;
  bool takes_turns = false;  // tokens spread as evenly as the shares allow, as a benchmark's do, and not by chance
  bool scattered = false;    // which rank holds which expert is not known: the mean over placements counts
};

// Of each expert, in the mean; 1 where nothing is known (null).
double mean_copies(const ExpertPopularity* popularity);

// Shares ~ 1 / rank^exponent, with popular experts scattered over the numbers; 0 = all alike.
ExpertPopularity zipf_popularity(int64_t experts, double exponent);

// The inverse of the distribution function of x^-exponent on [low, high], at (i + 1/2) / count for i = 0 .. count - 1.
std::vector<double> power_law_quantiles(size_t count, double exponent, double low, double high);

// What is known of a trained router's experts without a table: shares are the mid-quantiles of a density x^-exponent,
// and experts are scattered. The largest share is 20 times the smallest, and more in steps of many prompt tokens, which
// choose alike. The same law is the same object.
std::shared_ptr<const ExpertPopularity> power_law_popularity(int64_t experts, double exponent,
                                                             int64_t prompt_tokens = 0);

// Of each expert by itself: the tokens that choose it, and how likely any does.
std::vector<ExpertLoad> loads_of_experts(const ExpertPopularity& popularity, double tokens, int64_t top_k);

// A table with columns expert and tokens (of one layer, or of all of them together); experts from 0 on, each once, in
// any order. InputError with file and line.
ExpertPopularity read_expert_popularity(const std::filesystem::path& file);
ExpertPopularity read_expert_popularity(CsvReader csv);

// Of the busiest of `ranks` ranks, by the shares alone. `tokens` enter over all of them.
ExpertLoad popularity_load(const ExpertPopularity& popularity, double tokens, int64_t top_k, int64_t ranks);

}  // namespace foretoken
