// Where a search keeps its results, and which of several processes this one is.
#pragma once

#include <cstdint>
#include <string>

#include "app/cli/grammar/options.h"
#include "app/cli/grammar/ranks.h"

namespace foretoken {

struct StoreFlags {
  std::string store;  // empty = results are not kept
  int64_t rank = 0, ranks = 0;

  void declare(Options& options);
  // What the flags say, else the environment. InputError for several processes that have no store to share.
  ProcessRank own_rank(const Environment& environment = environment_variable) const;
};

}  // namespace foretoken
