#include "hardware/node_file.h"

#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

constexpr FactBounds link_bounds{"GB/s", 0.5, 10000};
constexpr FactBounds latency_bounds{"us", 0.01, 10000};
constexpr double microsecond = 1e-6;
constexpr JsonLimits small_file{.max_bytes = size_t{1} << 20};

// Follows a reference to another description. A name nobody knows is reported where it stands in this file.
template <class Lookup>
auto follow(const JsonView& reference, const std::filesystem::path& file, const Lookup& find) {
  std::string target = read_text(reference);
  if (means_a_file(target)) return find((file.parent_path() / target).string());
  try {
    return find(target);
  } catch (const InputError& error) {
    if (!error.problem().line) reference.fail(error.problem().expected, error.problem().suggestion);
    throw;  // found, but its own file is wrong
  }
}

template <class Described>
void read_names(const JsonView& file, Described& described) {
  described.name = read_text(file.at("name"));
  described.title = read_text(file.at("title"));
  described.aliases = find_texts(file, "aliases");
  described.note = find_text(file, "note");
}

void read_sides(const JsonView& view, NodeFabric& fabric) {
  const std::optional<JsonView> entry = view.find("sides");
  if (!has_neighbors_alone(fabric)) {
    if (entry) entry->fail("a fabric of kind grid or torus, which alone has this");
    return;
  }
  for (const JsonView& side : view.at("sides").items())
    fabric.sides.push_back(static_cast<int>(side.integer({1, 4096})));
}

NodeFabric read_node_fabric(const JsonView& view) {
  view.allow_only({"kind", "bandwidth_gb_per_s", "latency_us", "peer_access", "bridge_gb_per_s", "swept", "sides"});
  NodeFabric fabric{.kind = static_cast<NodeFabricKind>(read_choice(view.at("kind"), node_fabric_names)),
                    .bandwidth = read_fact_as<BytesPerSecond>(view.at("bandwidth_gb_per_s"), link_bounds, giga),
                    .latency = find_fact<Seconds>(view, "latency_us", latency_bounds, microsecond)};
  for (const char* key : {"peer_access", "bridge_gb_per_s", "swept"}) {
    const std::optional<JsonView> entry = view.find(key);
    if (entry && fabric.kind != NodeFabricKind::pcie) entry->fail("a fabric of kind pcie, which alone has this");
  }
  if (const auto peers = view.find("peer_access")) fabric.peer_access = read_fact_yes_or_no(*peers);
  fabric.bridge = find_fact<BytesPerSecond>(view, "bridge_gb_per_s", link_bounds, giga);
  if (const auto swept = view.find("swept")) fabric.is_swept = swept->boolean();
  read_sides(view, fabric);
  return fabric;
}

void read_host_devices(const JsonView& file, Node& node) {
  const std::optional<JsonView> entry = file.find("devices_per_host");
  if (!entry) return;
  constexpr FactBounds count{"a whole number", 1, 4096, true};
  node.host_devices = read_fact_as<int>(*entry, count);
  if (node.device_count % node.host_devices->value != 0) entry->fail("a number that divides device_count");
}

ClusterFabric read_cluster_fabric(const JsonView& view) {
  view.allow_only({"kind", "technology", "nic_bandwidth_gb_per_s", "oversubscription", "nodes_per_leaf",
                   "spine_switches", "latency_us"});
  constexpr FactBounds ratio{"a ratio of ports down to up", 1, 64};
  constexpr FactBounds count{"a whole number", 1, 100000, true};
  return {.kind = static_cast<ClusterFabricKind>(read_choice(view.at("kind"), cluster_fabric_names)),
          .technology = read_text(view.at("technology")),
          .nic_bandwidth = read_fact_as<BytesPerSecond>(view.at("nic_bandwidth_gb_per_s"), link_bounds, giga),
          .oversubscription = read_fact(view.at("oversubscription"), ratio),
          .nodes_per_leaf = read_fact_as<int>(view.at("nodes_per_leaf"), count),
          .spine_switches = find_fact<int>(view, "spine_switches", count),
          .latency = find_fact<Seconds>(view, "latency_us", latency_bounds, microsecond)};
}

}  // namespace

bool means_a_file(const std::string& name_or_path) {
  return name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json");
}

Node read_node_file(const std::filesystem::path& path, const DeviceLookup& find_device) {
  const Json document = read_json_file(path, small_file);
  const JsonView file(document, path.string());
  file.allow_only({"name", "title", "aliases", "note", "device", "device_count", "devices_per_host", "fabric", "host",
                   "network_cards", "power_limit_w"});
  Node node;
  read_names(file, node);
  node.device = follow(file.at("device"), path, find_device);
  node.device_count = static_cast<int>(file.at("device_count").integer({1, 4096}));
  read_host_devices(file, node);
  node.fabric = read_node_fabric(file.at("fabric"));
  if (has_neighbors_alone(node.fabric)) {
    const int devices = std::accumulate(node.fabric.sides.begin(), node.fabric.sides.end(), 1, std::multiplies<>());
    if (devices != node.device_count) file.at("fabric").at("sides").fail("sides whose product is device_count");
  }
  if (const auto host = file.find("host")) {
    host->allow_only({"cpu", "count", "source", "memory_gb_per_cpu"});
    constexpr FactBounds memory{"GB", 1, 1'000'000};
    node.host = {.cpu = follow(host->at("cpu"), path, find_device),
                 .count = static_cast<int>(host->at("count").integer({1, 4096})),
                 .source = read_text(host->at("source"))};
    // The sheets of CPUs say nothing of it: it is what is installed.
    if (const auto installed = find_fact<Bytes>(*host, "memory_gb_per_cpu", memory, giga)) {
      node.host->cpu.memory = installed;
    }
  }
  if (const auto cards = file.find("network_cards")) {
    cards->allow_only({"count", "bandwidth_gb_per_s"});
    constexpr FactBounds count{"a whole number", 1, 4096, true};
    node.network_cards = {
        .count = read_fact_as<int>(cards->at("count"), count),
        .bandwidth = read_fact_as<BytesPerSecond>(cards->at("bandwidth_gb_per_s"), link_bounds, giga)};
  }
  constexpr FactBounds power{"W", 50, 1'000'000};
  node.power_limit = find_fact<Watts>(file, "power_limit_w", power);
  return node;
}

Cluster read_cluster_file(const std::filesystem::path& path, const NodeLookup& find_node) {
  const Json document = read_json_file(path, small_file);
  const JsonView file(document, path.string());
  file.allow_only({"name", "title", "aliases", "note", "node", "node_count", "fabric", "usual"});
  Cluster cluster;
  if (const auto usual = file.find("usual")) cluster.is_usual = usual->boolean();
  read_names(file, cluster);
  const JsonView node = file.at("node");
  cluster.node = follow(node, path, find_node);
  if (!cluster.node.network_cards) node.fail("a node whose file lists its network_cards");
  cluster.node_count = static_cast<int>(file.at("node_count").integer({1, most_nodes}));
  cluster.fabric = read_cluster_fabric(file.at("fabric"));
  return cluster;
}

}  // namespace foretoken
