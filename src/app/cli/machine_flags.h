// The flags that say which machine collectives run on, and how finely; shared by every command that runs some.
#pragma once

#include <string>

#include "app/cli/library.h"
#include "app/cli/options.h"
#include "network/collective_estimate.h"

namespace foretoken {

struct MachineFlags {
  std::string cluster, node, topology;
  int64_t nodes = 0, domain = 0;
  std::string fidelity = "closed", routing = "ecmp";

  void declare_machine(Options& options);
  void declare_fidelity(Options& options, const std::string& name);

  CollectiveOptions collective_options() const;
  // InputError where none of cluster, node and topology is given, or more than one.
  CollectiveModel model(const Library& library, const CollectiveOptions& options) const;
  // What the machine is made of; nothing for a topology.
  std::optional<Device> device(const Library& library) const;
};

}  // namespace foretoken
