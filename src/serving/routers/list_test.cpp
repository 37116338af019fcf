#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/scheduling/router.h"
#include "serving/test_support.h"

namespace foretoken::routers_list_test {

std::vector<int64_t> requests_by_replica(const RecordedRun& run, size_t replicas) {
  std::vector<int64_t> counts(replicas);
  for (const RequestRecord& record : run.requests) ++counts[static_cast<size_t>(record.replica)];
  return counts;
}

RecordedRun serve(std::string_view router, std::vector<Request> requests, size_t replicas, uint64_t seed = 1) {
  LinearTimes times({});
  const ReplicaConfig replica{.options = {.num_gpu_blocks = 2000}, .times = &times};
  ListedRequests source(std::move(requests));
  RecordedRun run;
  simulate({.replicas = std::vector<ReplicaConfig>(replicas, replica), .router = std::string(router), .seed = seed},
           source, run);
  return run;
}

class Routers : public testing::TestWithParam<RouterKind> {};

TEST_P(Routers, serve_every_request_and_use_every_replica) {
  for (const size_t replicas : {1U, 2U, 5U}) {
    const RecordedRun run = serve(GetParam().name, random_requests(1, 400, 300, 300, 40), replicas);
    EXPECT_EQ(run.requests.size(), 400U);
    for (const int64_t count : requests_by_replica(run, replicas)) EXPECT_GT(count, 0);
  }
}

TEST_P(Routers, give_the_same_answer_twice) {
  const auto requests = random_requests(2, 300, 30, 300, 40);
  const RecordedRun one = serve(GetParam().name, requests, 3), two = serve(GetParam().name, requests, 3);
  for (size_t i = 0; i < one.requests.size(); ++i) {
    EXPECT_EQ(one.requests[i].replica, two.requests[i].replica);
    EXPECT_EQ(one.requests[i].last_token, two.requests[i].last_token);
  }
}

TEST_P(Routers, send_nothing_to_a_replica_that_could_never_serve_it) {
  LinearTimes times({});
  const ReplicaConfig roomy{.options = {.num_gpu_blocks = 2000}, .times = &times};
  const ReplicaConfig small{.options = {.num_gpu_blocks = 10}, .times = &times};
  std::vector<Request> requests = random_requests(5, 200, 30, 300, 40);
  for (Request& request : requests) {
    request.input_tokens += request.id % 2 == 0 ? 0 : 400;
    request.session = request.id % 7;
    request.prefix_block_tokens = 16;
    for (int64_t block = 0; block < request.input_tokens / 16; ++block) request.prefix_blocks.push_back(block);
  }
  requests.back().input_tokens = 100'000;
  ListedRequests source(requests);
  RecordedRun run;
  const SimulationTotals totals =
      simulate({.replicas = {small, roomy, roomy}, .router = std::string(GetParam().name)}, source, run);
  EXPECT_EQ(totals.rejected, 1) << "only what none can serve";
  for (const RequestRecord& record : run.requests) {
    if (record.input_tokens <= 160 || record.rejection != Rejection::none) continue;
    EXPECT_GT(record.replica, 0) << record.id;
  }
}

INSTANTIATE_TEST_SUITE_P(kinds, Routers, testing::ValuesIn(router_kinds().begin(), router_kinds().end()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(RequestRouter, round_robin_takes_turns) {
  const auto router = router_kind("round_robin").make(0);
  const std::vector<ReplicaLoad> loads(3);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(router->choose({}, loads), i % 3);
}

TEST(RequestRouter, load_decides) {
  const std::vector<ReplicaLoad> loads{{.outstanding = 9, .running = 9, .waiting = 0},
                                       {.outstanding = 6, .running = 4, .waiting = 2},
                                       {.outstanding = 8, .running = 7, .waiting = 1}};
  EXPECT_EQ(router_kind("least_outstanding").make(0)->choose({}, loads), 1U);
  EXPECT_EQ(router_kind("join_shortest_queue").make(0)->choose({}, loads), 0U);
  EXPECT_EQ(router_kind("data_parallel").make(0)->choose({}, loads), 0U);
}

TEST(RequestRouter, vidurs_least_outstanding_sees_only_its_queues) {
  const auto router = router_kind("vidur_lor").make(0);
  EXPECT_EQ(router->choose({}, std::vector<ReplicaLoad>{{.outstanding = 9, .running = 9}, {}, {}}), 0U);
  EXPECT_EQ(router->choose({}, std::vector<ReplicaLoad>{{.waiting = 2}, {.running = 5, .waiting = 1}, {.waiting = 1}}),
            1U);
}

TEST(RequestRouter, power_of_two_never_takes_the_most_loaded) {
  const auto router = router_kind("power_of_two").make(4);
  const std::vector<ReplicaLoad> loads{{.outstanding = 1}, {.outstanding = 9}, {.outstanding = 2}};
  for (int i = 0; i < 100; ++i) EXPECT_NE(router->choose({}, loads), 1U);
}

TEST(RequestRouter, a_session_stays_where_it_began) {
  std::vector<Request> requests = random_requests(3, 200, 30, 300, 40);
  for (Request& request : requests) request.session = request.id % 7;
  std::vector<int32_t> homes(7, -1);
  for (const RequestRecord& record : serve("session_sticky", requests, 3).requests) {
    int32_t& home = homes[static_cast<size_t>(record.id % 7)];
    if (home < 0) home = record.replica;
    EXPECT_EQ(record.replica, home);
  }
}

TEST(RequestRouter, prompts_with_a_common_prefix_go_to_one_replica_and_find_it_in_the_cache) {
  std::vector<Request> requests = random_requests(4, 300, 5, 150, 20);
  for (Request& request : requests) {
    request.input_tokens += 200;
    request.prefix_block_tokens = 16;
    for (int64_t block = 0; block < 12; ++block) request.prefix_blocks.push_back((request.id % 5) * 100 + block);
  }
  const auto cached = [](const RecordedRun& run) {
    int64_t tokens = 0;
    for (const RequestRecord& record : run.requests) tokens += record.cached_tokens;
    return tokens;
  };
  const RecordedRun aware = serve("prefix_aware", requests, 4);
  EXPECT_GT(cached(aware), cached(serve("round_robin", requests, 4)));
  EXPECT_GT(cached(aware), 280 * 192);
}

std::vector<ReplicaLoad> idle_replicas(int32_t count) {
  std::vector<ReplicaLoad> loads;
  for (int32_t i = 0; i < count; ++i) loads.push_back({.replica = i});
  return loads;
}

// Blocks of 16 tokens that are numbered from `first`.
Request with_blocks(int64_t first, int64_t blocks, int64_t input_tokens) {
  Request request{.input_tokens = input_tokens, .prefix_block_tokens = 16, .prefix_blocks = {}};
  for (int64_t i = 0; i < blocks; ++i) request.prefix_blocks.push_back(first + i);
  return request;
}

TEST(RequestRouter, a_system_prompt_that_all_share_does_not_bring_them_all_to_one_replica) {
  const auto router = router_kind("prefix_aware").make(0);
  std::vector<ReplicaLoad> loads = idle_replicas(3);
  loads[0].outstanding = 1;
  loads[1].outstanding = 0;
  EXPECT_EQ(router->choose(with_blocks(0, 10, 320), loads), 1U);
  loads[1].outstanding = 5;
  EXPECT_EQ(router->choose(with_blocks(0, 10, 320), loads), 2U) << "half the prompt is not more than half";
  loads[2].outstanding = 5;
  EXPECT_EQ(router->choose(with_blocks(0, 10, 319), loads), 2U) << "where it went last";
}

TEST(RequestRouter, a_block_is_known_only_behind_the_same_blocks) {
  const auto router = router_kind("prefix_aware").make(0);
  std::vector<ReplicaLoad> loads = idle_replicas(2);
  EXPECT_EQ(router->choose(with_blocks(0, 10, 160), loads), 0U);
  loads[0].outstanding = 1;
  EXPECT_EQ(router->choose(with_blocks(4, 6, 96), loads), 1U) << "the end of a prompt is no prefix";
  EXPECT_EQ(router->choose(with_blocks(0, 8, 128), loads), 0U);
}

TEST(RequestRouter, prefixes_not_seen_for_long_are_forgotten) {
  const auto router = router_kind("prefix_aware").make(0);
  std::vector<ReplicaLoad> loads = idle_replicas(2);
  EXPECT_EQ(router->choose(with_blocks(-1, 1, 16), loads), 0U);
  loads[0].outstanding = 1;
  EXPECT_EQ(router->choose(with_blocks(-1, 1, 16), loads), 0U) << "it is known";
  router->choose(with_blocks(0, 1 << 20, 16 << 20), loads);
  EXPECT_EQ(router->choose(with_blocks(-1, 1, 16), loads), 1U) << "a million others came since";
}

TEST(RequestRouter, suggests_the_nearest_name) {
  try {
    router_kind("round-robin");
    FAIL() << "an unknown name is an error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "round_robin");
  }
}

}  // namespace foretoken::routers_list_test
