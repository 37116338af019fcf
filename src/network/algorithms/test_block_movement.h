// For tests: carries out a plan on sets instead of numbers, and says who holds what at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "network/algorithms/common.h"

namespace foretoken {

// holdings[place][block] is the set of members (as bits) whose data are in it; 0 = nothing there.
using Holdings = std::vector<std::vector<uint64_t>>;

inline Holdings before(CollectiveKind kind, int64_t members, int64_t blocks, int32_t root) {
  Holdings held(members, std::vector<uint64_t>(blocks, 0));
  const int64_t share = blocks / members;
  for (int64_t place = 0; place < members; ++place) {
    for (int64_t block = 0; block < blocks; ++block) {
      const uint64_t own = uint64_t{1} << place;
      switch (kind) {
        case CollectiveKind::all_reduce:
        case CollectiveKind::barrier:
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::reduce:
          held[place][block] = own;
          break;
        case CollectiveKind::all_gather:
        case CollectiveKind::gather:
        case CollectiveKind::all_to_all:
          if (block / share == place) held[place][block] = own;
          break;
        case CollectiveKind::broadcast:
        case CollectiveKind::scatter:
        case CollectiveKind::send_recv:
          if (place == root) held[place][block] = own;
          break;
      }
    }
  }
  return held;
}

// What a place must hold of a block in the end; 0 = anything.
inline uint64_t needed(CollectiveKind kind, int64_t place, int64_t block, int64_t members, int64_t blocks,
                       int32_t root) {
  const uint64_t all = members == 64 ? ~uint64_t{0} : (uint64_t{1} << members) - 1;
  const int64_t share = blocks / members;
  const auto owner = [&] { return uint64_t{1} << (block / share); };
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:
      return all;
    case CollectiveKind::reduce_scatter:
      return block / share == place ? all : 0;
    case CollectiveKind::reduce:
      return place == root ? all : 0;
    case CollectiveKind::all_gather:
      return owner();
    case CollectiveKind::gather:
      return place == root ? owner() : 0;
    case CollectiveKind::all_to_all:
      return block % members == place ? owner() : 0;
    case CollectiveKind::broadcast:
      return uint64_t{1} << root;
    case CollectiveKind::scatter:
      return block / share == place ? uint64_t{1} << root : 0;
    case CollectiveKind::send_recv:
      return place == (root + 1) % members ? uint64_t{1} << root : 0;
  }
  return 0;
}

struct BlockMove {
  int32_t from, to;
  int64_t block;
};

inline std::vector<BlockMove> moves_of(const BlockStage& stage, int64_t blocks) {
  std::vector<BlockMove> moves;
  for (const BlockTransfer& transfer : stage.transfers) {
    for (int64_t i = 0; i < transfer.count && !transfer.in_switch; ++i)
      moves.push_back({transfer.from, transfer.to, (transfer.first + i * transfer.step) % blocks});
  }
  return moves;
}

// The data of members that share a switch, added once and handed to all of them. Transfers of a switch are a circle
// through its members, or a star.
inline void run_in_switch(const BlockStage& stage, Holdings& held) {
  std::vector<size_t> switch_of(held.size());
  for (size_t place = 0; place < held.size(); ++place) switch_of[place] = place;
  for (const BlockTransfer& transfer : stage.transfers) {
    if (!transfer.in_switch) continue;
    const size_t one = switch_of[static_cast<size_t>(transfer.from)],
                 other = switch_of[static_cast<size_t>(transfer.to)];
    std::replace(switch_of.begin(), switch_of.end(), other, one);
  }
  for (size_t block = 0; block < held.front().size(); ++block) {
    std::map<size_t, uint64_t> sums;
    for (size_t place = 0; place < held.size(); ++place) sums[switch_of[place]] |= held[place][block];
    for (const BlockTransfer& transfer : stage.transfers) {
      if (transfer.in_switch) held[transfer.to][block] = sums[switch_of[static_cast<size_t>(transfer.to)]];
    }
  }
}

inline void run_stage(const BlockStage& stage, int64_t blocks, Holdings& held) {
  // Sums rise through the switch, results come down through it.
  if (stage.reduces) run_in_switch(stage, held);
  std::vector<BlockMove> left = moves_of(stage, blocks);
  std::map<std::pair<int32_t, int64_t>, int> awaited;  // by place and block
  for (const BlockMove& move : left) ++awaited[{move.to, move.block}];
  while (!left.empty()) {
    std::vector<BlockMove> later;
    for (const BlockMove& move : left) {
      const auto found = awaited.find({move.from, move.block});
      if (found != awaited.end() && found->second > 0) {
        later.push_back(move);
        continue;
      }
      const uint64_t sent = held[move.from][move.block];
      ASSERT_NE(sent, 0u) << "place " << move.from << " sends block " << move.block << " that it does not have";
      uint64_t& there = held[move.to][move.block];
      if (stage.reduces) {
        ASSERT_EQ(there & sent, 0u) << "place " << move.to << " adds a member to block " << move.block << " twice";
        there |= sent;
      } else {
        ASSERT_EQ(there & ~sent, 0u) << "place " << move.to << " loses what it had of block " << move.block;
        there = sent;
      }
      --awaited[{move.to, move.block}];
    }
    ASSERT_LT(later.size(), left.size()) << "transfers wait for each other in a circle";
    left = std::move(later);
  }
  if (!stage.reduces) run_in_switch(stage, held);
}

// Fails the test where anyone ends without what the collective promises.
inline void expect_that_all_arrives(CollectiveKind kind, const BlockPlan& plan, int64_t members, int32_t root) {
  Holdings held = before(kind, members, plan.blocks, root);
  for (const BlockStage& stage : plan.stages) {
    run_stage(stage, plan.blocks, held);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (int64_t place = 0; place < members; ++place) {
    for (int64_t block = 0; block < plan.blocks; ++block) {
      const uint64_t wanted = needed(kind, place, block, members, plan.blocks, root);
      if (wanted != 0) {
        ASSERT_EQ(held[place][block], wanted) << "place " << place << ", block " << block;
      }
    }
  }
}

}  // namespace foretoken
