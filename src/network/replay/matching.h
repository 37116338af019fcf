// Who talks to whom in a workload: which nodes are one collective, which receive belongs to a send.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "network/replay/workload.h"

namespace foretoken {

inline constexpr uint32_t no_node = UINT32_MAX;

// Nodes of all ranks in one row: those of rank 0, then of rank 1, and so on.
class NodeNumbers {
 public:
  explicit NodeNumbers(const ReplayWorkload& workload);
  uint32_t number(size_t rank, size_t node) const { return first_[rank] + static_cast<uint32_t>(node); }
  size_t rank_of(uint32_t number) const;
  size_t place_of(uint32_t number) const { return number - first_[rank_of(number)]; }
  uint32_t count() const { return first_.back(); }

 private:
  std::vector<uint32_t> first_;
};

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int32_t group = 0;
  double bytes = 0;
  int32_t root = -1;             // as members say; -1 = none of them does
  int8_t kernel = -1;            // as the first member says
  size_t first_member = 0;       // in Matching::members, one for each rank of the group, ascending
  uint32_t following = no_node;  // the next call of the group
};

struct Matching {
  std::vector<CollectiveCall> calls;
  std::vector<uint32_t> members;  // node numbers
  // By node number. Collective: its call. Send: its receive. Receive: its send. Else no_node.
  std::vector<uint32_t> partner;

  std::span<const uint32_t> members_of(const CollectiveCall& call, const ReplayWorkload& workload) const {
    return std::span(members).subspan(call.first_member, workload.groups[static_cast<size_t>(call.group)].ranks.size());
  }
};

// The k-th collective of a group on one rank meets the k-th of that group on every other; the k-th send from one rank
// to another with a tag meets the k-th such receive; both in program order. InputError names file and node where kinds,
// sizes or roots disagree, a rank or root is not in the group it talks in, or one side has more than the other.
Matching match(const ReplayWorkload& workload, const NodeNumbers& numbers);

// "rank 3 node 17 (layer1.all_reduce)", for people.
std::string node_text(const ReplayWorkload& workload, size_t rank, size_t node);

}  // namespace foretoken
