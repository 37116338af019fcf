// How unevenly tokens choose experts, and the copies of busy ones that even it out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/csv.h"
#include "model/work.h"

namespace foretoken {

struct ExpertPopularity {
  std::vector<double> shares;  // of all routed copies, by expert: they add up to 1
  // More copies of busy experts (EPLB): one at a time to the expert whose copies are the busiest, then all copies to
  // ranks, the busiest first to the rank with the least so far.
  int64_t redundant = 0;
  // Given: mean load of a rank over that of the busiest, as engines report it; experts are alike otherwise.
  std::optional<double> balancedness = std::nullopt;
  bool takes_turns = false;  // tokens spread as evenly as the shares allow, as a benchmark's do, and not by chance
};

// Shares ~ 1 / rank^exponent, with popular experts scattered over the numbers; 0 = all alike.
ExpertPopularity zipf_popularity(int64_t experts, double exponent);

// A table with columns expert and tokens (of one layer, or of all of them together); experts from 0 on, each once, in
// any order. InputError with file and line.
ExpertPopularity read_expert_popularity(const std::filesystem::path& file);
ExpertPopularity read_expert_popularity(CsvReader csv);

// Of the busiest of `ranks` ranks. `tokens` enter over all of them.
ExpertLoad popularity_load(const ExpertPopularity& popularity, int64_t tokens, int64_t top_k, int64_t ranks);

}  // namespace foretoken
