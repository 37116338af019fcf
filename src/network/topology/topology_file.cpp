#include "network/topology/topology_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "hardware/fact_reader.h"
#include "hardware/node_file.h"
#include "network/topology/distance_search.h"
#include "network/topology/topology_text.h"

namespace foretoken {
namespace {

constexpr JsonLimits topology_limits{.max_bytes = size_t{256} << 20, .max_depth = 8, .max_values = 16'000'000};
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

// Of all links between two nodes.
struct LinkChange {
  NetworkNode from = 0, to = 0;
  bool one_way = false;
  bool removed = false;
  double factor = 1;
  std::optional<BytesPerSecond> bandwidth;
  std::optional<Seconds> latency;
};

LinkChange read_change(const JsonView& entry, const NodeNumbers& numbers) {
  entry.allow_only({"from", "to", "one_way", "removed", "bandwidth_factor", "bandwidth_gb_per_s", "latency_us"});
  LinkChange change{.from = read_node_name(entry.at("from"), numbers),
                    .to = read_node_name(entry.at("to"), numbers),
                    .one_way = read_flag(entry, "one_way", false),
                    .removed = read_flag(entry, "removed", false)};
  if (const auto factor = entry.find("bandwidth_factor")) change.factor = factor->number(factor_bounds);
  if (const auto rate = entry.find("bandwidth_gb_per_s")) {
    change.bandwidth = BytesPerSecond(rate->number(bandwidth_bounds) * giga);
  }
  if (const auto latency = entry.find("latency_us")) change.latency = microseconds(latency->number(latency_bounds));
  return change;
}

// The links of a graph that changes name, found in one pass however many changes there are.
class ChangedLinks {
 public:
  ChangedLinks(std::span<const LinkChange> changes, NetworkGraph& graph) : graph_(graph), removed_(graph.links.size()) {
    std::vector<bool> named(graph.names.size());  // most links do not begin at any of these
    for (const LinkChange& change : changes) {
      named[static_cast<size_t>(change.from)] = named[static_cast<size_t>(change.to)] = true;
      links_between_[{change.from, change.to}];
      links_between_[{change.to, change.from}];
    }
    for (size_t i = 0; i < graph.links.size(); ++i) {
      const Link& link = graph.links[i];
      if (!named[static_cast<size_t>(link.from)] || !named[static_cast<size_t>(link.to)]) continue;
      const auto found = links_between_.find({link.from, link.to});
      if (found != links_between_.end()) found->second.push_back(i);
    }
  }

  // Whether there were any, and not yet removed.
  bool apply(const LinkChange& change) {
    const bool forth = apply(change, change.from, change.to);
    const bool back = !change.one_way && apply(change, change.to, change.from);
    return forth || back;
  }

  // After all changes; the links that stay keep their order.
  void drop_removed() {
    size_t kept = 0;
    for (size_t i = 0; i < graph_.links.size(); ++i) {
      if (!removed_[i]) graph_.links[kept++] = graph_.links[i];
    }
    graph_.links.resize(kept);
  }

 private:
  bool apply(const LinkChange& change, NetworkNode from, NetworkNode to) {
    std::vector<size_t>& links = links_between_[{from, to}];
    const bool found = !links.empty();
    for (const size_t i : links) {
      Link& link = graph_.links[i];
      link.bandwidth = change.bandwidth.value_or(link.bandwidth) * change.factor;
      link.latency = change.latency.value_or(link.latency);
      removed_[i] = change.removed;
    }
    if (change.removed) links.clear();
    return found;
  }

  NetworkGraph& graph_;
  std::map<std::pair<NetworkNode, NetworkNode>, std::vector<size_t>> links_between_;
  std::vector<bool> removed_;
};

void apply_changes(const JsonView& entries, const NodeNumbers& numbers, NetworkGraph& graph) {
  const auto items = entries.items();
  std::vector<LinkChange> changes;
  for (const JsonView& entry : items) changes.push_back(read_change(entry, numbers));
  ChangedLinks links(changes, graph);
  for (size_t i = 0; i < changes.size(); ++i) {
    if (!links.apply(changes[i])) items[i].fail("two nodes with a link between them");
  }
  links.drop_removed();
}

void give_names(NetworkGraph& graph) {
  const Topology unnamed(graph);
  for (NetworkNode node = 0; node < unnamed.node_count(); ++node) graph.names.push_back(unnamed.name(node));
}

using LinksOf = std::span<const LinkIndex> (Topology::*)(NetworkNode node) const;

// The nodes that traffic of the first device can reach, or against the links (links_into, from) that can reach it.
std::vector<bool> joined_to_first(const Topology& topology, LinksOf links_of, NetworkNode Link::*far_end) {
  std::vector<bool> joined(static_cast<size_t>(topology.node_count()));
  joined[0] = true;
  std::vector<NetworkNode> open = {0};
  while (!open.empty()) {
    const NetworkNode node = open.back();
    open.pop_back();
    if (node != 0 && !topology.forwards(node)) continue;
    for (const LinkIndex link : (topology.*links_of)(node)) {
      const NetworkNode next = topology.link(link).*far_end;
      if (joined[static_cast<size_t>(next)]) continue;
      joined[static_cast<size_t>(next)] = true;
      open.push_back(next);
    }
  }
  return joined;
}

// The first device reaches all others and they reach it. Where devices only end traffic, two others may still lack a
// path; whoever asks for that route is told.
void check_connected(const Topology& topology) {
  const std::vector<bool> reach_first = joined_to_first(topology, &Topology::links_into, &Link::from);
  const std::vector<bool> reached = joined_to_first(topology, &Topology::links_out_of, &Link::to);
  for (NetworkNode device = 1; device < topology.device_count(); ++device) {
    if (!reach_first[static_cast<size_t>(device)]) throw no_path(topology, device, 0);
    if (!reached[static_cast<size_t>(device)]) throw no_path(topology, 0, device);
  }
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
  const Json document = parse_json(text, source, topology_limits);
  return read_topology(JsonView(document, source));
}

Topology read_topology_file(const std::filesystem::path& path) {
  return parse_topology_json(read_file(path, topology_limits.max_bytes), path.string());
}

Topology topology_from(const std::string& text_or_path) {
  // The text form has slashes too, in its rates; but only after a colon.
  if (text_or_path.find('@') == std::string::npos && means_a_file(text_or_path)) {
    return read_topology_file(text_or_path);
  }
  return parse_topology(text_or_path);
}

}  // namespace foretoken
