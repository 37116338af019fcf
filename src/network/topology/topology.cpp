#include "network/topology/topology.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// Node numbers and link numbers are 32 bits wide.
constexpr size_t most_nodes_or_links = std::numeric_limits<int32_t>::max() - 1;

[[noreturn]] void reject_link(size_t link, const std::string& value, const std::string& expected) {
  throw InputError({.source = "topology", .path = fmt::format("link {}", link), .value = value, .expected = expected});
}

void check_link(const Link& link, size_t index, int64_t node_count) {
  for (const NetworkNode end : {link.from, link.to}) {
    if (end < 0 || end >= node_count) {
      reject_link(index, fmt::format("node {}", end), fmt::format("a node from 0 to {}", node_count - 1));
    }
  }
  if (link.from == link.to) reject_link(index, fmt::format("node {}", link.from), "two different ends");
  if (!std::isfinite(link.bandwidth.value()) || link.bandwidth.value() <= 0) {
    reject_link(index, fmt::format("{} bytes/s", link.bandwidth.value()), "a bandwidth above zero");
  }
  if (!std::isfinite(link.latency.value()) || link.latency.value() < 0) {
    reject_link(index, fmt::format("{} s", link.latency.value()), "a latency of at least zero");
  }
}

// Links by one of their ends, each end's in the order they were given: `sorted` holds those of node i from first[i] on.
void sort_by_end(std::span<const Link> links, NetworkNode Link::*end, std::vector<int32_t>& first,
                 std::vector<LinkIndex>& sorted) {
  for (const Link& link : links) ++first[static_cast<size_t>(link.*end) + 1];
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  sorted.resize(links.size());
  std::vector<int32_t> next(first.begin(), first.end() - 1);
  for (size_t i = 0; i < links.size(); ++i) {
    sorted[static_cast<size_t>(next[static_cast<size_t>(links[i].*end)]++)] = static_cast<LinkIndex>(i);
  }
}

}  // namespace

NetworkNode NetworkGraph::add(NetworkNodeKind kind) {
  others.push_back(kind);
  return static_cast<NetworkNode>(device_count + static_cast<int64_t>(others.size()) - 1);
}

void NetworkGraph::connect(NetworkNode a, NetworkNode b, BytesPerSecond bandwidth, Seconds latency) {
  links.push_back({a, b, bandwidth, latency});
  links.push_back({b, a, bandwidth, latency});
}

Topology::Topology(NetworkGraph graph) : graph_(std::move(graph)) {
  const size_t node_count = static_cast<size_t>(graph_.device_count) + graph_.others.size();
  if (graph_.device_count < 1) throw InputError({.source = "topology", .expected = "at least one device"});
  if (node_count > most_nodes_or_links || graph_.links.size() > most_nodes_or_links) {
    throw InputError({.source = "topology",
                      .value = fmt::format("{} nodes, {} links", node_count, graph_.links.size()),
                      .expected = fmt::format("at most {} of each", most_nodes_or_links)});
  }
  ensure(graph_.names.empty() || graph_.names.size() == node_count, "either all nodes have names or none");
  for (size_t i = 0; i < graph_.links.size(); ++i) {
    check_link(graph_.links[i], i, static_cast<int64_t>(node_count));
  }
  first_out_.resize(node_count + 1);
  first_in_.resize(node_count + 1);
  sort_by_end(graph_.links, &Link::from, first_out_, out_);
  sort_by_end(graph_.links, &Link::to, first_in_, in_);
}

NetworkNodeKind Topology::kind(NetworkNode node) const {
  if (node < graph_.device_count) return NetworkNodeKind::device;
  return graph_.others[static_cast<size_t>(node - graph_.device_count)];
}

std::string Topology::name(NetworkNode node) const {
  if (!graph_.names.empty()) return graph_.names[static_cast<size_t>(node)];
  return fmt::format("{} {}", network_node_kind_names[static_cast<size_t>(kind(node))], node);
}

std::span<const LinkIndex> Topology::links_out_of(NetworkNode node) const {
  const auto i = static_cast<size_t>(node);
  return std::span(out_).subspan(static_cast<size_t>(first_out_[i]),
                                 static_cast<size_t>(first_out_[i + 1] - first_out_[i]));
}

std::span<const LinkIndex> Topology::links_into(NetworkNode node) const {
  const auto i = static_cast<size_t>(node);
  return std::span(in_).subspan(static_cast<size_t>(first_in_[i]),
                                static_cast<size_t>(first_in_[i + 1] - first_in_[i]));
}

}  // namespace foretoken
