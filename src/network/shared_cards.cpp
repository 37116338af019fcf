#include "network/shared_cards.h"

#include <algorithm>
#include <map>
#include <vector>

namespace foretoken {

namespace {

struct Cards {
  int64_t per_node = 1;  // devices
  int64_t count = 1;     // of a node
  int64_t of(int64_t device) const { return device / per_node * count + device % per_node * count / per_node; }
};

Cards cards_of(const Node& node) {
  return {.per_node = node.device_count,
          .count = node.network_cards ? node.network_cards->count.value : node.device_count};
}

std::map<int64_t, double> ranks_on_cards(const Cards& cards, const ProcessGroup& group) {
  std::map<int64_t, double> ranks;
  for (int64_t i = 0; i < group.size(); ++i) ranks[cards.of(group.device(i))] += 1;
  return ranks;
}

}  // namespace

bool shares_cards(const Node& node) {
  return node.network_cards && node.network_cards->count.value < node.device_count;
}

double groups_per_card(const Node& node, const ProcessGroup& group, std::span<const int64_t> busy) {
  if (!shares_cards(node)) return 1;
  const Cards cards = cards_of(node);
  const std::map<int64_t, double> own = ranks_on_cards(cards, group);
  std::map<int64_t, double> all;
  for (const int64_t device : busy) {
    if (own.contains(cards.of(device))) all[cards.of(device)] += 1;
  }
  double most = 1;
  for (const auto& [card, ranks] : all) most = std::max(most, ranks / own.at(card));
  return most;
}

double groups_per_card(const Node& node, const ProcessGroup& group) {
  if (!shares_cards(node)) return 1;
  const Cards cards = cards_of(node);
  std::vector<double> devices(static_cast<size_t>(cards.count));
  for (int64_t device = 0; device < cards.per_node; ++device) devices[static_cast<size_t>(cards.of(device))] += 1;
  double most = 1;
  for (const auto& [card, ranks] : ranks_on_cards(cards, group)) {
    most = std::max(most, devices[static_cast<size_t>(card % cards.count)] / ranks);
  }
  return most;
}

}  // namespace foretoken
