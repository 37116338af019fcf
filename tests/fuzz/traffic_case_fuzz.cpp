// Any bytes are either a traffic case whose transfers all end, none before it starts, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "network/flow/traffic_case.h"
#include "network/topology/topology_file.h"

namespace {

using namespace foretoken;

// Larger topologies are valid but take long.
bool is_small(const Topology& topology) {
  return topology.node_count() <= 1000 && topology.links().size() <= 10'000;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = as_text(data, size);
  try {
    const TrafficCase traffic = parse_traffic_case(text, "input");
    const Topology topology = topology_from(traffic.topology);
    if (!is_small(topology) || traffic.transfers.size() > 100) return 0;
    const std::vector<Seconds> ends = flow_level_ends(traffic, topology);
    promise(ends.size() == traffic.transfers.size(), "every transfer ends");
    for (size_t i = 0; i < ends.size(); ++i) promise(ends[i] >= traffic.transfers[i].start, "time does not go back");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
