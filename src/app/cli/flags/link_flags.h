// What users know of the links of their host, and how fast it is; the same for every command that runs there.
#pragma once

#include <string>

#include "app/cli/grammar/options.h"
#include "network/rank_places.h"

namespace foretoken {

struct LinkFlags {
  std::string link;

  void declare(Options& options);
  LinkSpec spec() const;
};

void declare_host_factor(Options& options, double& factor);

}  // namespace foretoken
