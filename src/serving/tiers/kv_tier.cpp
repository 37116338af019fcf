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
    {"remote", "a store that all nodes reach over their network cards (Mooncake, LMCache)", TierScope::all,
     TierScope::node, false},
}};

// Copies of a GiB between pinned host memory and an H200 reach 55.4 GB/s in and 55.1 out over PCIe 5.0 x16, which the
// sheet gives as 64 GB/s; blocks of 2 MiB 51.3 and 52.1. Measured for this project with PyTorch copies.
constexpr double share_of_sheet = 0.86;

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
  if (!node || !node->network_cards) return std::nullopt;
  // Mooncake's transfer engine reaches 87 GB/s over four cards of 25 GB/s and 190 GB/s over eight of 50 GB/s
  // (Mooncake, FAST 2025): 87% and 48% of them. The share of copies lies at the first.
  const NetworkCards& cards = *node->network_cards;
  const BytesPerSecond speed(share_of_sheet * static_cast<double>(cards.count.value) * cards.bandwidth.value.value());
  return TierSpeed{speed, speed, Seconds(1e-3), fmt::format("network cards of {}", node->name)};
}

}  // namespace foretoken
