#include "serving/tiers/kv_tier.h"

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// Blocks of 2 MiB, about what 16 tokens of a model of 8 billion parameters take, move at 51.3 GB/s into an H200 and at
// 52.1 out of it over PCIe 5.0 x16, which the sheet gives as 64 GB/s (pinned memory, PyTorch's copies; measured for
// this project; whole GiB: 55.4 and 55.1); at about 50 on an H100 (vLLM's blog, "Inside vLLM's New Offloading
// Connector").
constexpr double share_of_sheet = 0.80;

// To start a copy and learn of its end, and to ask a store on another machine: assumptions.
constexpr Seconds copy_latency(20e-6), request_latency(1e-3);

TierSpeed both_ways(BytesPerSecond sheet, Seconds latency) {
  const BytesPerSecond reached(share_of_sheet * sheet.value());
  return {.read = reached, .write = reached, .latency = latency};
}

std::optional<TierSpeed> peer_speed(const Device& device, const std::optional<Node>& /*node*/) {
  if (!device.link_bandwidth) return std::nullopt;
  return both_ways(device.link_bandwidth->value, copy_latency);
}

std::optional<TierSpeed> host_speed(const Device& device, const std::optional<Node>& /*node*/) {
  if (!device.host_bandwidth) return std::nullopt;
  return both_ways(device.host_bandwidth->value, copy_latency);
}

// One expander on PCIe 5.0 x8.
std::optional<TierSpeed> cxl_speed(const Device& /*device*/, const std::optional<Node>& /*node*/) {
  return both_ways(BytesPerSecond(32e9), copy_latency);
}

// One data-centre disk on PCIe 4.0 x4 (Samsung's sheet of the PM9A3, 3.84 TB: sequential, and a read's latency).
std::optional<TierSpeed> nvme_speed(const Device& /*device*/, const std::optional<Node>& /*node*/) {
  return TierSpeed{.read = BytesPerSecond(6.8e9), .write = BytesPerSecond(4.0e9), .latency = Seconds(100e-6)};
}

// Mooncake's transfer engine reaches 87 GB/s over four cards of 25 GB/s (Mooncake, FAST 2025): close to the same share.
std::optional<TierSpeed> remote_speed(const Device& /*device*/, const std::optional<Node>& node) {
  const std::optional<BytesPerSecond> cards = node ? network_bandwidth_per_device(*node) : std::nullopt;
  if (!cards) return std::nullopt;
  return both_ways(*cards, request_latency);
}

constexpr KvTierKind kinds[] = {
    {"peer", "idle memory of a neighboring GPU over its fabric (AQUA)", TierScope::replica, TierScope::replica, true,
     peer_speed},
    {"host", "DRAM of the node over each GPU's PCIe or C2C link", TierScope::node, TierScope::replica, true,
     host_speed},
    {"cxl", "CXL memory expanders of the node", TierScope::node, TierScope::node, false, cxl_speed},
    {"nvme", "solid-state disks of the node", TierScope::node, TierScope::node, false, nvme_speed},
    {"remote", "a shared store reached over the network cards of each GPU (Mooncake, LMCache)", TierScope::all,
     TierScope::replica, true, remote_speed},
};

}  // namespace

std::span<const KvTierKind> kv_tier_kinds() {
  return kinds;
}

std::vector<std::string> kv_tier_kind_names() {
  std::vector<std::string> names;
  for (const KvTierKind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

const KvTierKind& kv_tier_kind(std::string_view name) {
  for (const KvTierKind& kind : kinds) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = kv_tier_kind_names();
  throw InputError({.field = "kv_tier",
                    .path = "kind",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
