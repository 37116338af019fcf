// Which devices take part in a collective, in rank order, and how they lie on a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/cluster.h"

namespace foretoken {

class ProcessGroup {
 public:
  // Devices first, first + stride, ...: no list is kept. InputError for a count or stride below one.
  static ProcessGroup strided(int64_t first, int64_t count, int64_t stride = 1);
  // Any devices in any order. InputError for none, a negative number or a device named twice.
  static ProcessGroup of(std::vector<int32_t> devices);

  int64_t size() const { return count_; }
  int64_t device(int64_t rank) const { return listed_.empty() ? first_ + rank * stride_ : listed_[rank]; }
  int64_t last_device() const;  // the highest number

  // Of a group that is not a list; 0 for a list.
  int64_t stride() const { return listed_.empty() ? stride_ : 0; }

 private:
  int64_t first_ = 0, count_ = 0, stride_ = 1;
  std::vector<int32_t> listed_;
};

// Whether every pair of devices of a node has a link of its own.
bool is_mesh(const Cluster& cluster);

// InputError when a member lies beyond `devices`, which `machine` has.
void check_group(const ProcessGroup& group, int64_t devices, const std::string& machine);

// Whether two devices lie in one fast domain ("node"), so that what they send each other is near.
inline bool share_node(int64_t device, int64_t other, int64_t devices_per_node) {
  return device / devices_per_node == other / devices_per_node;
}

// The members sorted by fast domain ("node"), nodes in the order of their first rank: what an algorithm builds its
// rings and trees on. Communication libraries sort ranks in the same way. A member's position in this order is its
// place.
struct GroupLayout {
  std::vector<int32_t> devices;       // by place
  std::vector<int64_t> first_places;  // of each node, and one beyond the last
  int64_t devices_per_node = 1;       // of the machine: where share_node() draws the line
  bool mesh = false;                  // inside a node every pair has a link of its own

  int64_t members() const { return static_cast<int64_t>(devices.size()); }
  int64_t nodes() const { return static_cast<int64_t>(first_places.size()) - 1; }
  int64_t members_of(int64_t node) const { return first_places[node + 1] - first_places[node]; }
  int64_t fewest_per_node() const;
  int64_t most_per_node() const;
  int32_t place_of(int64_t device) const;  // of a member
};

GroupLayout group_layout(const ProcessGroup& group, int64_t devices_per_node, bool mesh);

// The same in numbers, for formulas: nothing here grows with the group.
struct GroupShape {
  int64_t ranks = 1;
  int64_t nodes = 1;
  int64_t most_per_node = 1;
  int64_t fewest_per_node = 1;
  int64_t most_per_card = 1;   // members that share a network card
  int64_t leaf_groups = 1;     // groups of nodes behind the same leaf switches
  int64_t nodes_per_leaf = 1;  // in the fullest of them
  int64_t most_per_leaf = 1;   // members below one leaf switch
  bool rails = false;          // a leaf switch serves one card of each node, else all cards of a node
  bool mesh = false;

  bool is_even() const { return most_per_node == fewest_per_node; }
};

// Of a strided group in constant time where its pattern repeats node by node; else by looking at every member.
GroupShape group_shape(const ProcessGroup& group, const Cluster& cluster);

}  // namespace foretoken
