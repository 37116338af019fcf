// The flags that say which machine collectives run on, and how finely; shared by every command that runs some.
#pragma once

#include <functional>
#include <string>

#include "app/cli/grammar/options.h"
#include "library/collective_machine.h"
#include "library/library.h"

namespace foretoken {

struct MachineFlags {
  std::string cluster, node, topology;
  int64_t nodes = 0, domain = 0;
  std::string fidelity = "closed", routing = "ecmp";

  void declare_machine(Options& options);
  void declare_fidelity(Options& options, const std::string& name);

  CollectiveOptions collective_options() const;
  // InputError where none of cluster, node and topology is given, or more than one. `known`: times that were measured
  // on it, for a machine of so many devices; a topology has no use for them. A cluster whose nodes nobody counted has
  // enough of them for `least_devices`.
  CollectiveMachine machine(const Library& library, CollectiveOptions options,
                            const std::function<std::vector<KnownTime>(int64_t device_count)>& known = {},
                            int64_t least_devices = 0) const;
};

}  // namespace foretoken
