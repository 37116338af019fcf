#include "network/topology/topology_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "hardware/fact_reader.h"
#include "hardware/node_file.h"
#include "network/topology/router.h"
#include "network/topology/topology_text.h"

namespace foretoken {
namespace {

constexpr JsonLimits limits{.max_bytes = size_t{256} << 20, .max_depth = 8, .max_values = 16'000'000};
constexpr Range<double> bandwidth_bounds{1e-6, 1e6};  // GB/s
constexpr Range<double> latency_bounds{0, 1e9};       // us
constexpr Range<double> factor_bounds{1e-6, 1e6};

using NodeNumbers = std::map<std::string, NetworkNode, std::less<>>;

NetworkNode read_node_name(const JsonView& entry, const NodeNumbers& numbers) {
  const std::string name = entry.string();
  const auto found = numbers.find(name);
  if (found != numbers.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, number] : numbers) names.push_back(known);
  entry.fail("the name of a node", nearest_name(name, names).value_or(""));
}

bool read_flag(const JsonView& object, std::string_view key, bool otherwise) {
  const std::optional<JsonView> entry = object.find(key);
  return entry ? entry->boolean() : otherwise;
}

// Devices first, whatever their place in the file; both keep their order.
NetworkGraph read_nodes(const JsonView& entries) {
  NetworkGraph graph;
  std::vector<std::string> other_names;
  std::set<std::string> seen;
  for (const JsonView& entry : entries.items()) {
    entry.allow_only({"name", "kind"});
    std::string name = read_text(entry.at("name"));
    if (!seen.insert(name).second) entry.at("name").fail("a name that no other node has");
    const auto kind = static_cast<NetworkNodeKind>(read_choice(entry.at("kind"), network_node_kind_names));
    if (kind == NetworkNodeKind::device) {
      ++graph.device_count;
      graph.names.push_back(std::move(name));
    } else {
      graph.others.push_back(kind);
      other_names.push_back(std::move(name));
    }
  }
  if (graph.device_count == 0) entries.fail("at least one node of kind device");
  graph.names.insert(graph.names.end(), other_names.begin(), other_names.end());
  return graph;
}

NodeNumbers numbers_of(const NetworkGraph& graph) {
  NodeNumbers numbers;
  for (size_t i = 0; i < graph.names.size(); ++i) numbers[graph.names[i]] = static_cast<NetworkNode>(i);
  return numbers;
}

void read_links(const JsonView& entries, const NodeNumbers& numbers, NetworkGraph& graph) {
  for (const JsonView& entry : entries.items()) {
    entry.allow_only({"from", "to", "bandwidth_gb_per_s", "latency_us", "one_way"});
    Link link{.from = read_node_name(entry.at("from"), numbers), .to = read_node_name(entry.at("to"), numbers)};
    if (link.from == link.to) entry.at("to").fail("another node than `from`");
    link.bandwidth = BytesPerSecond(entry.at("bandwidth_gb_per_s").number(bandwidth_bounds) * giga);
    if (const auto latency = entry.find("latency_us")) link.latency = microseconds(latency->number(latency_bounds));
    graph.links.push_back(link);
    if (!read_flag(entry, "one_way", false)) {
      std::swap(link.from, link.to);
      graph.links.push_back(link);
    }
  }
}

struct LinkChange {
  bool removed = false;
  double factor = 1;
  std::optional<BytesPerSecond> bandwidth;
  std::optional<Seconds> latency;
};

LinkChange read_change(const JsonView& entry) {
  entry.allow_only({"from", "to", "one_way", "removed", "bandwidth_factor", "bandwidth_gb_per_s", "latency_us"});
  LinkChange change{.removed = read_flag(entry, "removed", false)};
  if (const auto factor = entry.find("bandwidth_factor")) change.factor = factor->number(factor_bounds);
  if (const auto rate = entry.find("bandwidth_gb_per_s")) {
    change.bandwidth = BytesPerSecond(rate->number(bandwidth_bounds) * giga);
  }
  if (const auto latency = entry.find("latency_us")) change.latency = microseconds(latency->number(latency_bounds));
  return change;
}

// All links from one node to another; whether there were any.
bool apply(const LinkChange& change, NetworkNode from, NetworkNode to, NetworkGraph& graph) {
  bool found = false;
  for (Link& link : graph.links) {
    if (link.from != from || link.to != to) continue;
    found = true;
    link.bandwidth = change.bandwidth.value_or(link.bandwidth) * change.factor;
    link.latency = change.latency.value_or(link.latency);
  }
  if (change.removed) {
    std::erase_if(graph.links, [&](const Link& link) { return link.from == from && link.to == to; });
  }
  return found;
}

void apply_changes(const JsonView& entries, const NodeNumbers& numbers, NetworkGraph& graph) {
  constexpr size_t most_changes = 10'000;  // each looks at every link
  if (entries.items().size() > most_changes) entries.fail(fmt::format("at most {} changes", most_changes));
  for (const JsonView& entry : entries.items()) {
    const LinkChange change = read_change(entry);
    const NetworkNode from = read_node_name(entry.at("from"), numbers);
    const NetworkNode to = read_node_name(entry.at("to"), numbers);
    bool found = apply(change, from, to, graph);
    if (!read_flag(entry, "one_way", false) && apply(change, to, from, graph)) found = true;
    if (!found) entry.fail("two nodes with a link between them");
  }
}

void give_names(NetworkGraph& graph) {
  const Topology unnamed(graph);
  for (NetworkNode node = 0; node < unnamed.node_count(); ++node) graph.names.push_back(unnamed.name(node));
}

// The first device reaches all others and they reach it. Where devices only end traffic, two others may still lack a
// path; whoever asks for that route is told.
void check_connected(const Topology& topology) {
  Router router(topology, LinkRouting::shortest);
  for (NetworkNode device = 1; device < topology.device_count(); ++device) router.distance(device, 0);
  for (NetworkNode device = 1; device < topology.device_count(); ++device) router.distance(0, device);
}

NetworkGraph read_graph(const JsonView& file) {
  if (const auto text = file.find("topology")) {
    if (file.has("nodes")) text->fail("either a topology or nodes and links, not both");
    NetworkGraph graph;
    try {
      graph = parse_topology(text->string()).graph();
    } catch (const InputError& error) {
      text->fail(error.problem().expected, error.problem().suggestion);
    }
    if (graph.names.empty()) give_names(graph);
    return graph;
  }
  NetworkGraph graph = read_nodes(file.at("nodes"));
  read_links(file.at("links"), numbers_of(graph), graph);
  return graph;
}

Topology read_topology(const JsonView& file) {
  file.allow_only({"title", "note", "topology", "nodes", "links", "devices_forward", "changes"});
  NetworkGraph graph = read_graph(file);
  graph.devices_forward = read_flag(file, "devices_forward", graph.devices_forward);
  if (const auto changes = file.find("changes")) apply_changes(*changes, numbers_of(graph), graph);
  Topology topology(std::move(graph));
  try {
    check_connected(topology);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.source = file.source();
    throw InputError(std::move(problem));
  }
  return topology;
}

}  // namespace

Topology parse_topology_json(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, limits);
  return read_topology(JsonView(document, source));
}

Topology read_topology_file(const std::filesystem::path& path) {
  return parse_topology_json(read_file(path, limits.max_bytes), path.string());
}

Topology topology_from(const std::string& text_or_path) {
  // The text form has slashes too, in its rates; but only after a colon.
  if (text_or_path.find('@') == std::string::npos && means_a_file(text_or_path)) {
    return read_topology_file(text_or_path);
  }
  return parse_topology(text_or_path);
}

}  // namespace foretoken
