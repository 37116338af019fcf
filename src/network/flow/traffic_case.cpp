#include "network/flow/traffic_case.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "hardware/fact_reader.h"
#include "network/flow/flow_simulator.h"
#include "network/topology/topology_file.h"

namespace foretoken {
namespace {

constexpr JsonLimits case_limits{.max_bytes = size_t{64} << 20, .max_depth = 8};
constexpr Range<double> time_bounds{0, 1e12};  // us
constexpr Range<double> size_bounds{1, 1e15};  // bytes

Packets read_packets(const JsonView& entry) {
  entry.allow_only({"payload_bytes", "header_bytes", "window_bytes"});
  return {.payload_bytes = entry.at("payload_bytes").number({64, 65000}),
          .header_bytes = entry.at("header_bytes").number({0, 1000}),
          .window_bytes = entry.at("window_bytes").number({1, 1e9})};
}

TimedTransfer read_transfer(const JsonView& entry, int64_t devices) {
  entry.allow_only({"from", "to", "bytes", "start_us"});
  const Range<int64_t> device{0, devices - 1};
  const auto from = static_cast<int32_t>(entry.at("from").integer(device));
  const auto to = static_cast<int32_t>(entry.at("to").integer(device));
  if (from == to) entry.at("to").fail("another device than `from`");
  const double bytes = entry.at("bytes").number(size_bounds);
  const std::optional<JsonView> start = entry.find("start_us");
  return {.transfer = {from, to, bytes}, .start = start ? microseconds(start->number(time_bounds)) : Seconds(0)};
}

}  // namespace

TrafficCase read_traffic_case(const std::filesystem::path& path) {
  return parse_traffic_case(read_file(path, case_limits.max_bytes), path.string());
}

TrafficCase parse_traffic_case(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, case_limits);
  const JsonView file(document, source);
  file.allow_only({"title", "topology", "routing", "packets", "transfers", "recorded"});
  TrafficCase traffic{.title = read_text(file.at("title")), .topology = read_text(file.at("topology"))};
  const int64_t devices = topology_from(traffic.topology).device_count();
  traffic.routing = static_cast<LinkRouting>(read_choice(file.at("routing"), link_routing_names));
  traffic.packets = read_packets(file.at("packets"));
  for (const JsonView& entry : file.at("transfers").items()) traffic.transfers.push_back(read_transfer(entry, devices));
  if (const auto recorded = file.find("recorded")) {
    recorded->allow_only({"by", "ends_us"});
    read_text(recorded->at("by"));
    for (const JsonView& end : recorded->at("ends_us").items()) {
      traffic.recorded_ends.push_back(microseconds(end.number(time_bounds)));
    }
    if (traffic.recorded_ends.size() != traffic.transfers.size()) {
      recorded->at("ends_us").fail(fmt::format("one time for each of the {} transfers", traffic.transfers.size()));
    }
  }
  return traffic;
}

std::vector<Seconds> flow_level_ends(const TrafficCase& traffic, const Topology& topology) {
  NetworkGraph graph = topology.graph();
  const Packets& packets = traffic.packets;
  for (Link& link : graph.links) {
    link.bandwidth = link.bandwidth * (packets.payload_bytes / (packets.payload_bytes + packets.header_bytes));
  }
  const Topology payload_topology(std::move(graph));
  FlowSimulator simulator(payload_topology, {.routing = traffic.routing});
  for (const TimedTransfer& timed : traffic.transfers) {
    simulator.start({.stages = {{.transfers = {timed.transfer}}}}, to_picoseconds(timed.start));
  }
  std::vector<Seconds> ends(traffic.transfers.size());
  while (true) {
    const std::span<const JobNumber> done = simulator.advance();
    if (done.empty()) return ends;
    for (const JobNumber job : done) ends[static_cast<size_t>(job)] = to_seconds(simulator.now());
  }
}

}  // namespace foretoken
