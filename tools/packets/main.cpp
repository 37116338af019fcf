// foretoken-packets CASE.json: the case at packet level (ns-3) and at flow level, as one JSON document.
#include <cmath>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "network/flow/traffic_case.h"
#include "network/topology/topology_file.h"
#include "packet_level.h"

namespace foretoken {
namespace {

Json in_microseconds(std::span<const double> seconds) {
  Json times = Json::array();
  for (const double value : seconds) times.push(static_cast<double>(std::llround(value * 1e9)) / 1e3);
  return times;
}

Json answer(const std::string& path) {
  const TrafficCase traffic = read_traffic_case(path);
  const Topology topology = topology_from(traffic.topology);
  std::vector<double> flow_ends;
  for (const Seconds end : flow_level_ends(traffic, topology)) flow_ends.push_back(end.value());
  return Json::object({{"title", traffic.title},
                       {"packet_level_ends_us", in_microseconds(packet_level_ends(traffic, topology))},
                       {"flow_level_ends_us", in_microseconds(flow_ends)}});
}

}  // namespace
}  // namespace foretoken

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: foretoken-packets CASE.json\n", stderr);
    return 2;
  }
  try {
    fmt::print("{}\n", foretoken::answer(arguments[1]).dump(0));
    return 0;
  } catch (const foretoken::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
