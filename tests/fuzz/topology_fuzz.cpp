// Any bytes are either a topology in which devices reach the first one, or an InputError; as JSON and as one line.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "network/topology/router.h"
#include "network/topology/topology_file.h"
#include "network/topology/topology_text.h"

namespace {

using namespace foretoken;

constexpr size_t most_digits_in_a_row = 3;  // larger topologies are valid but take long

bool is_small(std::string_view text) {
  size_t digits = 0;
  for (const char letter : text) {
    digits = letter >= '0' && letter <= '9' ? digits + 1 : 0;
    if (digits > most_digits_in_a_row) return false;
  }
  return text.size() < 2000;
}

template <class Parse>
void try_to_read(const Parse& parse) {
  try {
    const Topology topology = parse();
    promise(topology.device_count() >= 1, "a topology has a device");
    if (topology.device_count() < 2 || topology.node_count() > 10'000) return;
    const auto last = static_cast<NetworkNode>(topology.device_count() - 1);
    std::vector<RouteLink> route;
    Router(topology, LinkRouting::adaptive).route(last, 0, 0, route);
    promise(!route.empty(), "a route has a link");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(as_text(data, size));
  if (!is_small(text)) return 0;
  try_to_read([&] { return parse_topology_json(text, "input"); });
  try_to_read([&] { return parse_topology(text); });
  return 0;
}
