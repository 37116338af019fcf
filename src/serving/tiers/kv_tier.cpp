#include "serving/tiers/kv_tier.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr std::array<KvTierKind, 5> kinds{{
    {"peer", "idle memory of a neighbour GPU over its fabric (AQUA)", TierScope::replica, TierScope::replica, true},
    {"host", "DRAM of the node over each GPU's PCIe or C2C", TierScope::node, TierScope::replica, true},
    {"cxl", "memory expanders of the node", TierScope::node, TierScope::node, false},
    {"nvme", "solid-state disks of the node", TierScope::node, TierScope::node, false},
    {"remote", "a store that all reach over the network cards of each GPU (Mooncake, LMCache)", TierScope::all,
     TierScope::replica, true},
}};

// Blocks of 2 MiB, about what 16 tokens of a model of 8 billion parameters take, move at 51.3 GB/s into an H200 and at
// 52.1 out of it over PCIe 5.0 x16, which the sheet gives as 64 GB/s (pinned memory, PyTorch's copies; measured for
// this project; whole GiB: 55.4 and 55.1); at about 50 on an H100 (vLLM's blog, "Inside vLLM's New Offloading
// Connector").
constexpr double share_of_sheet = 0.80;

BytesPerSecond reached(const Fact<BytesPerSecond>& sheet) {
  return BytesPerSecond(share_of_sheet * sheet.value.value());
}

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
  throw InputError({.source = "--kv-tier",
                    .path = "kind",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

std::optional<TierSpeed> usual_speed(const KvTierKind& kind, const Device& device, const std::optional<Node>& node) {
  // To start a copy and learn of its end: an assumption.
  constexpr Seconds copy_latency(20e-6);
  if (kind.name == "peer") {
    if (!device.link_bandwidth) return std::nullopt;
    const BytesPerSecond speed = reached(*device.link_bandwidth);
    return TierSpeed{speed, speed, copy_latency,
                     fmt::format("{:.0f}% of the links of {}", 100 * share_of_sheet, device.name)};
  }
  if (kind.name == "host") {
    if (!device.host_bandwidth) return std::nullopt;
    const BytesPerSecond speed = reached(*device.host_bandwidth);
    return TierSpeed{speed, speed, copy_latency,
                     fmt::format("{:.0f}% of PCIe or C2C of {}", 100 * share_of_sheet, device.name)};
  }
  if (kind.name == "cxl") {
    // One expander on PCIe 5.0 x8, 32 GB/s each way, at the same share.
    const BytesPerSecond speed(share_of_sheet * 32e9);
    return TierSpeed{speed, speed, copy_latency, "one CXL 2.0 expander on PCIe 5.0 x8"};
  }
  if (kind.name == "nvme") {
    return TierSpeed{BytesPerSecond(6.8e9), BytesPerSecond(4.0e9), Seconds(100e-6),
                     "one data-centre disk on PCIe 4.0 x4 (Samsung PM9A3 3.84 TB, sequential)"};
  }
  if (!node) return std::nullopt;
  const std::optional<BytesPerSecond> cards = network_bandwidth_per_device(*node);
  if (!cards) return std::nullopt;
  // Mooncake's transfer engine reaches 87 GB/s over four cards of 25 GB/s (Mooncake, FAST 2025): close to
  // the same share.
  const BytesPerSecond speed(share_of_sheet * cards->value());
  return TierSpeed{speed, speed, Seconds(1e-3), fmt::format("network cards of {}", node->name)};
}

}  // namespace foretoken
