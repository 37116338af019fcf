#include "network/replay/replay.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "network/replay/test_workload.h"

namespace foretoken::replay_replay_test {

using testing::HasSubstr;

ReplayResult run(TestWorkload workload) {
  const ReplayWorkload built = std::move(workload).build();
  return replay(built, *test_network());
}

double makespan_us(TestWorkload workload) {
  return static_cast<double>(run(std::move(workload)).makespan) / test_microsecond;
}

std::string complaint(TestWorkload workload) {
  try {
    run(std::move(workload));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Replay, a_chain_takes_the_sum_and_a_stream_runs_one_kernel_at_a_time) {
  TestWorkload chain(1);
  chain.compute(0, 3, {chain.compute(0, 2)});
  EXPECT_EQ(makespan_us(std::move(chain)), 5);
  TestWorkload stream(1);
  stream.compute(0, 3);
  stream.compute(0, 2);
  EXPECT_EQ(makespan_us(std::move(stream)), 5);
}

TEST(Replay, streams_and_the_host_run_side_by_side) {
  TestWorkload workload(1);
  workload.compute(0, 3, {}, 0);
  workload.compute(0, 4, {}, 7);
  workload.host(0, 2);
  EXPECT_EQ(makespan_us(std::move(workload)), 4);
}

TEST(Replay, of_the_ready_nodes_a_lane_takes_the_first_in_program_order) {
  TestWorkload workload(1);
  const uint64_t long_one = workload.compute(0, 10);
  const uint64_t gate = workload.host(0, 5);
  const uint64_t early = workload.compute(0, 1, {gate});
  const uint64_t late = workload.compute(0, 1);
  const ReplayResult result = run(std::move(workload));
  EXPECT_EQ(result.nodes[0][long_one].start, 0);
  EXPECT_EQ(result.nodes[0][early].start, 10 * test_microsecond);
  EXPECT_EQ(result.nodes[0][late].start, 11 * test_microsecond);
}

TEST(Replay, a_collective_starts_with_its_last_member) {
  TestWorkload workload(3);
  for (size_t rank = 0; rank < 3; ++rank) {
    const uint64_t before = workload.compute(rank, static_cast<int64_t>(rank) * 4);
    workload.compute(rank, 1, {workload.all_reduce(rank, 5, {before})});
  }
  const ReplayResult result = run(std::move(workload));
  EXPECT_EQ(result.makespan, (8 + 5 + 1) * test_microsecond);
  ASSERT_EQ(result.collectives.size(), 1U);
  EXPECT_EQ(result.collectives[0].first_arrival, 0);
  EXPECT_EQ(result.collectives[0].start, 8 * test_microsecond);
  EXPECT_EQ(result.ranks[0].waiting, 8 * test_microsecond);
  EXPECT_EQ(result.ranks[2].waiting, 0);
}

TEST(Replay, groups_overlap_and_a_group_runs_one_collective_after_the_other) {
  TestWorkload workload(4);
  const int32_t low = workload.group({0, 1}), high = workload.group({2, 3}), crossed = workload.group({0, 2});
  workload.all_reduce(0, 5, {}, low);
  workload.all_reduce(1, 5, {}, low);
  workload.all_reduce(2, 7, {}, high);
  workload.all_reduce(3, 7, {}, high);
  workload.all_reduce(0, 4, {}, crossed);
  workload.all_reduce(2, 4, {}, crossed);
  workload.all_reduce(0, 5, {}, low);
  workload.all_reduce(1, 5, {}, low);
  EXPECT_EQ(makespan_us(std::move(workload)), 10);
}

TEST(Replay, the_network_is_told_the_place_of_the_root_in_its_group) {
  const auto place_of_root = [](std::vector<int32_t> roots) {
    TestWorkload workload(4);
    const int32_t group = workload.group({1, 2, 3}, {3, 1, 2});
    for (size_t rank = 1; rank < 4; ++rank) workload.broadcast(rank, roots[rank - 1], 5, group);
    int64_t place = -1;
    const auto network = undisturbed_network([&](const NetworkCall& call) {
      place = call.root;
      return microseconds(call.bytes);
    });
    replay(std::move(workload).build(), *network);
    return place;
  };
  EXPECT_EQ(place_of_root({2, 2, 2}), 2);
  EXPECT_EQ(place_of_root({-1, 1, -1}), 1) << "one member says it for all";
  EXPECT_EQ(place_of_root({-1, -1, -1}), 0) << "else the first of the group";
  EXPECT_THROW(place_of_root({2, 3, 2}), InputError);
  EXPECT_THROW(place_of_root({0, 0, 0}), InputError) << "not in the group";
}

TEST(Replay, communication_behind_compute_is_not_exposed) {
  TestWorkload workload(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    workload.all_reduce(rank, 5);
    workload.compute(rank, 3);
  }
  const ReplayResult result = run(std::move(workload));
  EXPECT_EQ(result.ranks[0].compute, 3 * test_microsecond);
  EXPECT_EQ(result.ranks[0].exposed_communication, 2 * test_microsecond);
  EXPECT_EQ(result.ranks[0].communication, 5 * test_microsecond);
}

TEST(Replay, a_kernel_that_ends_earlier_than_it_was_meant_to_ends_the_replay) {
  TestWorkload workload(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    workload.compute(rank, 100);
    workload.all_reduce(rank, 10);
  }
  const ReplayWorkload built = std::move(workload).build();
  const ReplayResult result = replay(built, *test_network(), {.busy_share = [](const NetworkCall&) { return 0.5; }});
  // Beside the collective for good it would take 200: its event of then no longer counts.
  EXPECT_EQ(result.nodes[0][0].finish, 105 * test_microsecond);
  EXPECT_EQ(result.makespan, 105 * test_microsecond);
  EXPECT_EQ(result.ranks[1].idle, 0);
}

TEST(Replay, kernels_slow_down_while_a_collective_keeps_processors_busy) {
  const auto both = [](int64_t compute_us, int64_t collective_us, double share) {
    TestWorkload workload(2);
    for (size_t rank = 0; rank < 2; ++rank) {
      workload.compute(rank, compute_us);
      workload.all_reduce(rank, collective_us);
    }
    const ReplayWorkload built = std::move(workload).build();
    const ReplayResult result =
        replay(built, *test_network(), {.busy_share = [&](const NetworkCall&) { return share; }});
    return static_cast<double>(result.nodes[0][0].finish) / test_microsecond;
  };
  EXPECT_DOUBLE_EQ(both(6, 100, 0.25), 8) << "beside it all the time: 6 / 0.75";
  EXPECT_DOUBLE_EQ(both(60, 40, 0.25), 70) << "30 of its 60 in the first 40, the rest at full rate";
  EXPECT_DOUBLE_EQ(both(6, 100, 0), 6);
  EXPECT_DOUBLE_EQ(both(6, 100, 1), 60) << "never stops";
}

TEST(Replay, a_receive_ends_with_its_send_and_a_send_needs_no_receiver) {
  TestWorkload workload(2);
  const uint64_t before = workload.compute(0, 2);
  const uint64_t sent = workload.send(0, 1, 3, {before});
  const uint64_t received = workload.receive(1, 0, 3);
  const uint64_t late = workload.receive(0, 1, 1, {workload.compute(0, 20, {sent})});
  workload.send(1, 0, 1, {received});
  const ReplayResult result = run(std::move(workload));
  EXPECT_EQ(result.nodes[1][received].finish, 5 * test_microsecond);
  EXPECT_EQ(result.ranks[1].waiting, 2 * test_microsecond);
  EXPECT_EQ(result.ranks[1].exposed_communication, 4 * test_microsecond);
  EXPECT_EQ(result.nodes[0][late].finish, 25 * test_microsecond) << "what has arrived is there at once";
}

TEST(Replay, messages_are_matched_by_tag_and_then_in_order) {
  TestWorkload workload(2);
  workload.send(0, 1, 3, {}, 1);
  workload.send(0, 1, 5, {}, 2);
  workload.send(0, 1, 4, {}, 1);
  const uint64_t second_tag = workload.receive(1, 0, 5, {}, 2);
  const uint64_t first = workload.receive(1, 0, 3, {}, 1);
  const uint64_t second = workload.receive(1, 0, 4, {}, 1);
  const ReplayResult result = run(std::move(workload));
  EXPECT_EQ(result.nodes[1][first].finish, 3 * test_microsecond);
  EXPECT_EQ(result.nodes[1][second].finish, 4 * test_microsecond);
  EXPECT_EQ(result.nodes[1][second_tag].finish, 5 * test_microsecond);
}

TEST(Replay, a_node_may_stand_before_those_it_waits_for) {
  TestWorkload workload(1);
  workload.compute(0, 1, {2});
  workload.compute(0, 2, {2});
  workload.compute(0, 4);
  const ReplayWorkload built = std::move(workload).build();
  EXPECT_EQ(built.ranks[0].nodes[0].id, 2U);
  EXPECT_EQ(replay(built, *test_network()).makespan, 7 * test_microsecond);
}

TEST(Replay, nodes_without_any_time_end_at_zero) {
  TestWorkload workload(1);
  uint64_t last = workload.marker(0);
  for (int i = 0; i < 1000; ++i) last = workload.compute(0, 0, {workload.marker(0, {last})});
  EXPECT_EQ(makespan_us(std::move(workload)), 0);
  EXPECT_EQ(makespan_us(TestWorkload(3)), 0) << "ranks that do nothing";
}

TEST(ReplayErrors, a_circle_on_one_rank_is_named) {
  TestWorkload workload(1);
  workload.compute(0, 1);
  workload.compute(0, 1, {0, 3});
  workload.compute(0, 1, {1});
  workload.compute(0, 1, {2});
  const std::string message = complaint(std::move(workload));
  EXPECT_THAT(message, HasSubstr("rank0: dependencies"));
  EXPECT_THAT(message, HasSubstr("1 -> 3 -> 2 -> 1"));
  TestWorkload itself(1);
  itself.compute(0, 1, {0});
  EXPECT_THAT(complaint(std::move(itself)), HasSubstr("0 -> 0"));
}

TEST(ReplayErrors, a_dangling_dependency_and_an_id_used_twice_are_named) {
  TestWorkload dangling(2);
  dangling.compute(1, 1, {99});
  EXPECT_THAT(complaint(std::move(dangling)), HasSubstr("rank1: node 0 = depends on node 99"));
  RankGraph twice("file");
  twice.add({.id = 4});
  twice.add({.id = 4});
  EXPECT_THROW(std::move(twice).program(), InputError);
}

TEST(ReplayErrors, members_that_disagree_are_named) {
  TestWorkload sizes(2);
  sizes.all_reduce(0, 5);
  sizes.all_reduce(1, 6);
  EXPECT_THAT(complaint(std::move(sizes)), HasSubstr("all_reduce of 5 bytes, as in rank 0 node 0"));
  TestWorkload kinds(2);
  kinds.collective(0, CollectiveKind::all_gather, 5);
  kinds.collective(1, CollectiveKind::all_to_all, 5);
  EXPECT_THAT(complaint(std::move(kinds)), HasSubstr("all_gather of 5 bytes"));
  TestWorkload uneven(2);
  uneven.collective(0, CollectiveKind::all_to_all, 5);
  uneven.collective(1, CollectiveKind::all_to_all, 9);
  EXPECT_EQ(makespan_us(std::move(uneven)), 9) << "an uneven all-to-all takes as long as its largest";
}

TEST(ReplayErrors, a_member_that_stays_away_is_named) {
  TestWorkload workload(3);
  for (size_t rank = 0; rank < 3; ++rank) workload.all_reduce(rank, 5);
  workload.all_reduce(0, 5);
  workload.all_reduce(1, 5);
  EXPECT_THAT(complaint(std::move(workload)), HasSubstr("rank 2 to take part"));
  TestWorkload stranger(2);
  const int32_t other = stranger.group({1});
  stranger.all_reduce(0, 5, {}, other);
  EXPECT_THAT(complaint(std::move(stranger)), HasSubstr("a group that holds rank 0"));
}

TEST(ReplayErrors, messages_without_their_other_side_are_named) {
  TestWorkload sent(2);
  sent.send(0, 1, 5);
  EXPECT_THAT(complaint(std::move(sent)), HasSubstr("a send without its receive"));
  TestWorkload received(2);
  received.receive(1, 0, 5);
  EXPECT_THAT(complaint(std::move(received)), HasSubstr("a receive without its send"));
  TestWorkload sizes(2);
  sizes.send(0, 1, 5);
  sizes.receive(1, 0, 6);
  EXPECT_THAT(complaint(std::move(sizes)), HasSubstr("5 bytes, as rank 0 node 0"));
  TestWorkload itself(2);
  itself.send(0, 0, 5);
  EXPECT_THAT(complaint(std::move(itself)), HasSubstr("another rank from 0 to 1"));
}

TEST(ReplayErrors, ranks_that_wait_for_each_other_are_named) {
  TestWorkload receives(2);
  receives.send(0, 1, 1, {receives.receive(0, 1, 1)});
  receives.send(1, 0, 1, {receives.receive(1, 0, 1)});
  const std::string message = complaint(std::move(receives));
  EXPECT_THAT(message, HasSubstr("ranks wait for each other: rank 0 node 0"));
  EXPECT_THAT(message, HasSubstr("-> rank 1 node 1"));

  TestWorkload crossed(2);
  const int32_t other = crossed.group({0, 1});
  crossed.all_reduce(0, 1, {crossed.all_reduce(0, 1)}, other);
  crossed.all_reduce(1, 1, {1}, 0);
  crossed.all_reduce(1, 1, {}, other);
  EXPECT_THAT(complaint(std::move(crossed)), HasSubstr("rank 0 node 0 (node) -> rank 1 node 0 (node)"));
}

// A random workload that can finish: every rank runs the same collectives in the same order.
TestWorkload random_workload(uint64_t seed) {
  RandomStream random(seed, "replay");
  const size_t ranks = 1 + random.below(5);
  TestWorkload workload(ranks);
  const auto steps = static_cast<int>(1 + random.below(30));
  std::vector<int64_t> calls;
  for (int step = 0; step < steps; ++step) calls.push_back(static_cast<int64_t>(random.below(9)));
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<uint64_t> ids;
    const auto some = [&] {
      std::vector<uint64_t> waits;
      for (uint64_t i = 0; !ids.empty() && i < random.below(3); ++i) waits.push_back(ids[random.below(ids.size())]);
      return waits;
    };
    for (const int64_t us : calls) {
      ids.push_back(
          workload.compute(rank, static_cast<int64_t>(random.below(7)), some(), static_cast<int64_t>(random.below(2))));
      ids.push_back(workload.host(rank, static_cast<int64_t>(random.below(3)), some()));
      ids.push_back(workload.all_reduce(rank, us, some()));
    }
  }
  return workload;
}

TEST(ReplayLaws, times_of_a_rank_add_up_and_the_critical_path_has_no_gaps) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const ReplayResult result = run(random_workload(seed));
    for (const RankTimes& rank : result.ranks) {
      EXPECT_EQ(rank.compute + rank.exposed_communication + rank.memory + rank.waiting + rank.host + rank.idle,
                result.makespan);
      EXPECT_GE(rank.communication, rank.exposed_communication);
      EXPECT_LE(rank.finish, result.makespan);
    }
    Picoseconds at = 0;
    for (const PathStep& step : result.critical_path) {
      EXPECT_EQ(step.start, at);
      EXPECT_GE(step.finish, step.start);
      at = step.finish;
    }
    EXPECT_EQ(at, result.makespan);
  }
}

TEST(ReplayLaws, nothing_starts_before_what_it_waits_for_and_lanes_hold_one_node) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const ReplayWorkload workload = random_workload(seed).build();
    const ReplayResult result = replay(workload, *test_network());
    for (size_t rank = 0; rank < workload.ranks.size(); ++rank) {
      const RankProgram& program = workload.ranks[rank];
      std::vector<std::pair<Picoseconds, Picoseconds>> busy[8];
      for (size_t node = 0; node < program.nodes.size(); ++node) {
        const NodeRun run = result.nodes[rank][node];
        for (const uint32_t dependent : program.dependents_of(node)) {
          EXPECT_GE(result.nodes[rank][dependent].start, run.finish);
        }
        if (program.nodes[node].lane >= 0) {
          EXPECT_EQ(run.finish - run.start, program.nodes[node].duration);
          busy[program.nodes[node].lane].emplace_back(run.start, run.finish);
        }
      }
      for (auto& lane : busy) {
        std::sort(lane.begin(), lane.end());
        for (size_t i = 1; i < lane.size(); ++i) EXPECT_LE(lane[i - 1].second, lane[i].first);
      }
    }
  }
}

TEST(ReplayLaws, a_kernel_beside_collectives_takes_as_long_as_the_processors_left_to_it) {
  constexpr double share = 0.3;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const ReplayWorkload workload = random_workload(seed).build();
    const auto with = [&](double busy) {
      return replay(workload, *test_network(), {.busy_share = [&](const NetworkCall&) { return busy; }});
    };
    EXPECT_EQ(with(0).makespan, replay(workload, *test_network()).makespan);
    const ReplayResult result = with(share);
    for (size_t rank = 0; rank < workload.ranks.size(); ++rank) {
      for (size_t node = 0; node < workload.ranks[rank].nodes.size(); ++node) {
        const ReplayNode& one = workload.ranks[rank].nodes[node];
        if (one.kind != ReplayKind::compute) continue;
        const NodeRun run = result.nodes[rank][node];
        const auto took = static_cast<double>(run.finish - run.start);
        Picoseconds beside = 0;  // collectives of one group follow each other, so their times do not overlap
        for (const CollectiveRun& call : result.collectives) {
          beside += std::max<Picoseconds>(0, std::min(call.finish, run.finish) - std::max(call.start, run.start));
        }
        EXPECT_NEAR(took - share * static_cast<double>(beside), static_cast<double>(one.duration), 100);
      }
    }
  }
}

TEST(ReplayLaws, the_same_workload_gives_the_same_result) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ReplayResult first = run(random_workload(seed)), second = run(random_workload(seed));
    EXPECT_EQ(first.makespan, second.makespan);
    ASSERT_EQ(first.critical_path.size(), second.critical_path.size());
    for (size_t i = 0; i < first.critical_path.size(); ++i) {
      EXPECT_EQ(first.critical_path[i].rank, second.critical_path[i].rank);
      EXPECT_EQ(first.critical_path[i].node, second.critical_path[i].node);
    }
  }
}

}  // namespace foretoken::replay_replay_test
