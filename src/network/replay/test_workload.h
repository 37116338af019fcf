// Small workloads for tests, built by hand.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "network/replay/network.h"
#include "network/replay/workload.h"

namespace foretoken {

inline constexpr Picoseconds test_microsecond = 1'000'000;

// Ranks that run nodes of whole microseconds. Nodes are numbered by rank from 0.
class TestWorkload {
 public:
  explicit TestWorkload(size_t ranks) {
    for (size_t rank = 0; rank < ranks; ++rank) graphs_.emplace_back("rank" + std::to_string(rank));
    next_id_.assign(ranks, 0);
    std::vector<int32_t> all;
    for (size_t rank = 0; rank < ranks; ++rank) all.push_back(static_cast<int32_t>(rank));
    groups_.push_back({.name = "all", .ranks = all});
  }

  // `listed`: another order of the ranks.
  int32_t group(std::vector<int32_t> ranks, std::vector<int32_t> listed = {}) {
    groups_.push_back(
        {.name = "group" + std::to_string(groups_.size()), .ranks = std::move(ranks), .listed = std::move(listed)});
    return static_cast<int32_t>(groups_.size()) - 1;
  }

  uint64_t compute(size_t rank, int64_t us, std::vector<uint64_t> waits = {}, int64_t stream = 0) {
    return timed(rank, ReplayKind::compute, us, stream, waits);
  }
  uint64_t host(size_t rank, int64_t us, std::vector<uint64_t> waits = {}) {
    return timed(rank, ReplayKind::host, us, 0, waits);
  }
  uint64_t marker(size_t rank, std::vector<uint64_t> waits = {}) { return add(rank, {}, waits); }
  uint64_t all_reduce(size_t rank, int64_t us, std::vector<uint64_t> waits = {}, int32_t group = 0) {
    return add(rank, {.bytes = static_cast<double>(us), .group = group, .kind = ReplayKind::collective}, waits);
  }
  uint64_t collective(size_t rank, CollectiveKind kind, int64_t us, std::vector<uint64_t> waits = {}) {
    return add(rank, {.bytes = static_cast<double>(us), .group = 0, .kind = ReplayKind::collective, .collective = kind},
               waits);
  }
  uint64_t broadcast(size_t rank, int32_t root, int64_t us, int32_t group = 0) {
    return add(rank,
               {.bytes = static_cast<double>(us),
                .group = group,
                .root = root,
                .kind = ReplayKind::collective,
                .collective = CollectiveKind::broadcast},
               {});
  }
  uint64_t send(size_t rank, int32_t to, int64_t us, std::vector<uint64_t> waits = {}, int64_t tag = 0) {
    return add(rank, {.bytes = static_cast<double>(us), .peer = to, .tag = tag, .kind = ReplayKind::send}, waits);
  }
  uint64_t receive(size_t rank, int32_t from, int64_t us, std::vector<uint64_t> waits = {}, int64_t tag = 0) {
    return add(rank, {.bytes = static_cast<double>(us), .peer = from, .tag = tag, .kind = ReplayKind::receive}, waits);
  }

  ReplayWorkload build() && {
    ReplayWorkload workload{.groups = std::move(groups_), .names = {"node"}};
    for (RankGraph& graph : graphs_) workload.ranks.push_back(std::move(graph).program());
    return workload;
  }

 private:
  uint64_t timed(size_t rank, ReplayKind kind, int64_t us, int64_t lane, const std::vector<uint64_t>& waits) {
    return add(rank, {.duration = us * test_microsecond, .lane = graphs_[rank].lane(kind, lane), .kind = kind}, waits);
  }
  uint64_t add(size_t rank, ReplayNode node, const std::vector<uint64_t>& waits) {
    node.id = next_id_[rank]++;
    graphs_[rank].add(node);
    graphs_[rank].wait_for(waits);
    return node.id;
  }

  std::vector<RankGraph> graphs_;
  std::vector<uint64_t> next_id_;
  std::vector<ReplayGroup> groups_;
};

// A network in which a call of b bytes takes b microseconds.
inline std::unique_ptr<ReplayNetwork> test_network() {
  return undisturbed_network([](const NetworkCall& call) { return microseconds(call.bytes); });
}

}  // namespace foretoken
