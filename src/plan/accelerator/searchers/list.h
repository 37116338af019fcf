// One make_ function per way to search designs; each is defined in the file of its name.
#pragma once

#include "plan/accelerator/design_searcher.h"

namespace foretoken {

std::unique_ptr<DesignSearcher> make_random_searcher(const ChoiceGrid& grid, uint64_t seed);
std::unique_ptr<DesignSearcher> make_genetic_searcher(const ChoiceGrid& grid, uint64_t seed);
std::unique_ptr<DesignSearcher> make_bayesian_searcher(const ChoiceGrid& grid, uint64_t seed);
std::unique_ptr<DesignSearcher> make_exhaustive_searcher(const ChoiceGrid& grid, uint64_t seed);

}  // namespace foretoken
