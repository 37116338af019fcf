// The flags that say which machine the ranks of a step run on, and how they lie on it.
#pragma once

#include <string>

#include "app/cli/flags/link_flags.h"
#include "app/cli/grammar/options.h"
#include "network/rank_places.h"

namespace foretoken {

struct PlacementFlags {
  std::string node, cluster, rank_order;
  LinkFlags link;

  void declare(Options& options);
  PlacementSpec spec() const;
};

}  // namespace foretoken
