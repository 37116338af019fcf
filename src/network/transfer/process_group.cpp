#include "network/transfer/process_group.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr int64_t most_devices = std::numeric_limits<int32_t>::max();

[[noreturn]] void refuse(std::string value, std::string expected) {
  throw InputError({.source = "process group", .value = std::move(value), .expected = std::move(expected)});
}

// Counts of a group, member by member.
class ShapeCounter {
 public:
  ShapeCounter(const Cluster& cluster, int64_t last_device)
      : per_node_(devices_per_node(cluster)),
        nodes_per_leaf_(cluster.node_count > 1 ? cluster.fabric.nodes_per_leaf.value : 1),
        rails_(cluster.fabric.kind == ClusterFabricKind::rail_optimized),
        cards_(std::min(per_node_, cluster.node.network_cards ? cluster.node.network_cards->count.value : per_node_)) {
    const int64_t nodes = last_device / per_node_ + 1;
    of_node_.resize(nodes);
    of_card_.resize(nodes * cards_);
    of_leaf_.resize((nodes / nodes_per_leaf_ + 1) * (rails_ ? cards_ : 1));
  }

  void add(int64_t device) {
    const int64_t node = device / per_node_, card = device % per_node_ * cards_ / per_node_;
    const int64_t leaf_group = node / nodes_per_leaf_;
    ++of_node_[node];
    ++of_card_[node * cards_ + card];
    ++of_leaf_[rails_ ? leaf_group * cards_ + card : leaf_group];
  }

  GroupShape shape(int64_t ranks) const {
    GroupShape shape{.ranks = ranks, .nodes = 0, .fewest_per_node = ranks, .leaf_groups = 0, .rails = rails_};
    int64_t leaf_group = -1, nodes_of_group = 0;
    for (size_t node = 0; node < of_node_.size(); ++node) {
      if (of_node_[node] == 0) continue;
      ++shape.nodes;
      shape.most_per_node = std::max(shape.most_per_node, of_node_[node]);
      shape.fewest_per_node = std::min(shape.fewest_per_node, of_node_[node]);
      const int64_t here = static_cast<int64_t>(node) / nodes_per_leaf_;
      nodes_of_group = here == leaf_group ? nodes_of_group + 1 : 1;
      if (here != leaf_group) ++shape.leaf_groups;
      leaf_group = here;
      shape.nodes_per_leaf = std::max(shape.nodes_per_leaf, nodes_of_group);
    }
    shape.most_per_card = *std::max_element(of_card_.begin(), of_card_.end());
    shape.most_per_leaf = *std::max_element(of_leaf_.begin(), of_leaf_.end());
    return shape;
  }

 private:
  int64_t per_node_, nodes_per_leaf_;
  bool rails_;
  int64_t cards_;  // that devices share, or as many as devices
  std::vector<int64_t> of_node_, of_card_, of_leaf_;
};

// Members of whole nodes side by side, or one in every so many nodes: one node, and one leaf group, tell of all.
bool repeats_by_node(const ProcessGroup& group, const Cluster& cluster) {
  const int64_t stride = group.stride(), per_node = devices_per_node(cluster);
  if (stride == 0) return false;
  if (stride % per_node == 0) return true;
  const int64_t in_a_node = per_node / stride;
  return per_node % stride == 0 && group.device(0) % per_node < stride && group.size() % in_a_node == 0;
}

}  // namespace

bool is_mesh(const Cluster& cluster) {
  const NodeFabricKind kind = cluster.node.fabric.kind;
  return kind == NodeFabricKind::nvlink_mesh || kind == NodeFabricKind::xgmi;
}

ProcessGroup ProcessGroup::strided(int64_t first, int64_t count, int64_t stride) {
  if (count < 1) refuse(fmt::format("{} ranks", count), "at least one");
  if (stride < 1) refuse(fmt::format("a stride of {}", stride), "at least one");
  if (first < 0 || first > most_devices || count > most_devices || stride > most_devices ||
      count - 1 > (most_devices - first) / stride) {
    refuse(fmt::format("{} ranks from {} on, {} apart", count, first, stride),
           fmt::format("device numbers between 0 and {}", most_devices));
  }
  ProcessGroup group;
  group.first_ = first;
  group.count_ = count;
  group.stride_ = stride;
  return group;
}

ProcessGroup ProcessGroup::of(std::vector<int32_t> devices) {
  if (devices.empty()) refuse("no ranks", "at least one");
  std::vector<int32_t> sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0) refuse(fmt::format("device {}", sorted.front()), "numbers from 0 on");
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) refuse(fmt::format("device {} twice", *twice), "every device once");
  ProcessGroup group;
  group.count_ = static_cast<int64_t>(devices.size());
  group.listed_ = std::move(devices);
  return group;
}

int64_t ProcessGroup::last_device() const {
  return listed_.empty() ? device(count_ - 1) : *std::max_element(listed_.begin(), listed_.end());
}

void check_group(const ProcessGroup& group, int64_t devices, const std::string& machine) {
  if (group.last_device() < devices) return;
  refuse(fmt::format("device {}", group.last_device()),
         fmt::format("at most {}: {} has {}, counted from 0", devices - 1, machine, counted(devices, "device")));
}

int64_t GroupLayout::fewest_per_node() const {
  int64_t fewest = members();
  for (int64_t node = 0; node < nodes(); ++node) fewest = std::min(fewest, members_of(node));
  return fewest;
}

int64_t GroupLayout::most_per_node() const {
  int64_t most = 0;
  for (int64_t node = 0; node < nodes(); ++node) most = std::max(most, members_of(node));
  return most;
}

int32_t GroupLayout::place_of(int64_t device) const {
  const auto found = std::find(devices.begin(), devices.end(), device);
  ensure(found != devices.end(), "only members of a group have a place in it");
  return static_cast<int32_t>(found - devices.begin());
}

GroupLayout group_layout(const ProcessGroup& group, int64_t devices_per_node, bool mesh) {
  ensure(devices_per_node >= 1, "a node holds at least one device");
  std::map<int64_t, size_t> numbers;
  std::vector<std::vector<int32_t>> members;  // by node
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    const int64_t device = group.device(rank);
    const auto [found, is_new] = numbers.try_emplace(device / devices_per_node, members.size());
    if (is_new) members.emplace_back();
    members[found->second].push_back(static_cast<int32_t>(device));
  }
  GroupLayout layout{.first_places = {0}, .devices_per_node = devices_per_node, .mesh = mesh};
  for (const std::vector<int32_t>& node : members) {
    layout.devices.insert(layout.devices.end(), node.begin(), node.end());
    layout.first_places.push_back(layout.members());
  }
  return layout;
}

GroupShape group_shape(const ProcessGroup& group, const Cluster& cluster) {
  const bool repeats = repeats_by_node(group, cluster);
  const int64_t per_node = devices_per_node(cluster);
  const int64_t in_a_node = repeats ? std::max<int64_t>(1, per_node / group.stride()) : 0;
  // Of a group that repeats, its first node, as if it were the cluster's first.
  const int64_t counted = repeats ? in_a_node : group.size();
  const int64_t offset = repeats ? group.device(0) / per_node * per_node : 0;
  ShapeCounter counter(cluster, repeats ? per_node - 1 : group.last_device());
  for (int64_t rank = 0; rank < counted; ++rank) counter.add(group.device(rank) - offset);
  GroupShape shape = counter.shape(counted);
  shape.mesh = is_mesh(cluster);
  if (!repeats) return shape;

  const int64_t node_stride = std::max<int64_t>(1, group.stride() / per_node);
  const int64_t leaf_size = cluster.node_count > 1 ? cluster.fabric.nodes_per_leaf.value : 1;
  const int64_t first_node = group.device(0) / per_node, last_node = group.device(group.size() - 1) / per_node;
  shape.ranks = group.size();
  shape.nodes = group.size() / in_a_node;
  shape.leaf_groups = std::min(shape.nodes, last_node / leaf_size - first_node / leaf_size + 1);
  // Where the group begins inside a leaf group or skips nodes, the fullest may hold fewer than this.
  shape.nodes_per_leaf = std::min(shape.nodes, (leaf_size + node_stride - 1) / node_stride);
  shape.most_per_leaf *= shape.nodes_per_leaf;
  return shape;
}

}  // namespace foretoken
