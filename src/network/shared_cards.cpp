#include "network/shared_cards.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace foretoken {
namespace {

struct Cards {
  int64_t per_node = 1;  // devices
  int64_t count = 1;     // of a node
  int64_t of(int64_t device) const { return device / per_node * count + device % per_node * count / per_node; }
};

}  // namespace

bool shares_cards(const Node& node) {
  return node.network_cards && node.network_cards->count.value < node.device_count;
}

double groups_per_card(const Node& node, const ProcessGroup& group, std::span<const int64_t> busy) {
  if (!shares_cards(node)) return 1;
  const Cards cards{.per_node = node.device_count, .count = node.network_cards->count.value};
  std::map<int64_t, double> own, all;
  for (int64_t i = 0; i < group.size(); ++i) own[cards.of(group.device(i))] += 1;
  for (const int64_t device : busy) {
    if (own.contains(cards.of(device))) all[cards.of(device)] += 1;
  }
  double most = 1;
  for (const auto& [card, ranks] : all) most = std::max(most, ranks / own.at(card));
  return most;
}

double groups_per_card(const Node& node, const ProcessGroup& group) {
  if (!shares_cards(node)) return 1;
  std::set<int64_t> nodes;
  for (int64_t i = 0; i < group.size(); ++i) nodes.insert(group.device(i) / node.device_count);
  std::vector<int64_t> busy;
  for (const int64_t one : nodes) {
    for (int64_t device = 0; device < node.device_count; ++device) busy.push_back(one * node.device_count + device);
  }
  return groups_per_card(node, group, busy);
}

}  // namespace foretoken
