#include "library/collective_machine.h"

#include <utility>

#include "library/library.h"

namespace foretoken {

CollectiveMachine collective_machine(const Library& library, Cluster cluster, CollectiveOptions options,
                                     std::vector<KnownTime> known) {
  const Device device = cluster.node.device;
  std::unique_ptr<const CommunicationPredictor> measured;
  if (std::optional<CommunicationPredictor> found = library.collectives(device, cluster.node, std::move(known))) {
    measured = std::make_unique<const CommunicationPredictor>(std::move(*found));
  }
  options.measured = measured.get();
  return {.measured = std::move(measured), .model = {std::move(cluster), options}, .device = device};
}

}  // namespace foretoken
