#include "network/replay/summary.h"

#include <gtest/gtest.h>

#include "network/replay/test_workload.h"

namespace foretoken::summary_test {

TEST(ReplaySummary, collectives_are_grouped_by_kind_ranks_and_size) {
  TestWorkload workload(4);
  const int32_t low = workload.group({0, 1}), high = workload.group({2, 3});
  for (size_t rank = 0; rank < 4; ++rank) {
    const int32_t mine = rank < 2 ? low : high;
    workload.compute(rank, static_cast<int64_t>(rank));
    workload.all_reduce(rank, 5, {0}, mine);
    workload.all_reduce(rank, 5, {1}, mine);
    workload.all_reduce(rank, 50, {2});
  }
  const ReplayWorkload built = std::move(workload).build();
  const ReplaySummary summary = summarize_replay(built, replay(built, *test_network()));
  ASSERT_EQ(summary.collectives.size(), 2U);
  EXPECT_EQ(summary.collectives[0].ranks, 4);
  EXPECT_EQ(summary.collectives[0].total, 50 * test_microsecond);
  EXPECT_EQ(summary.collectives[1].calls, 4);
  EXPECT_EQ(summary.collectives[1].total, 20 * test_microsecond);
  EXPECT_EQ(summary.collectives[1].skew, 2 * test_microsecond) << "one each from the first of either pair";
}

TEST(ReplaySummary, parts_of_the_path_add_up_to_the_makespan) {
  TestWorkload workload(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    const uint64_t computed = workload.compute(rank, 3 + static_cast<int64_t>(rank));
    workload.host(rank, 2, {workload.all_reduce(rank, 7, {computed})});
  }
  const ReplayWorkload built = std::move(workload).build();
  const ReplaySummary summary = summarize_replay(built, replay(built, *test_network()));
  Picoseconds by_kind = 0, by_name = 0;
  for (const PathPart& part : summary.path_by_kind) by_kind += part.time;
  for (const PathPart& part : summary.path_by_name) by_name += part.time;
  EXPECT_EQ(by_kind, summary.makespan);
  EXPECT_EQ(by_name, summary.makespan);
  EXPECT_EQ(summary.path_by_kind[0].kind, "all_reduce");
  EXPECT_EQ(summary.mean.compute, 7 * test_microsecond / 2);
}

}  // namespace foretoken::summary_test
