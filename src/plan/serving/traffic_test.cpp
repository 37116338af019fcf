#include "plan/serving/traffic.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/test_support.h"

namespace foretoken::traffic_test {

TEST(Traffic, every_rate_has_the_same_requests_sooner_or_later) {
  const Traffic traffic(random_requests(1, 500, 3, 1000, 100));
  for (const double rate : {0.1, 3.0, 40.0}) {
    const auto source = traffic.at_rate(rate, 500);
    const std::vector<Request> requests = Traffic::taken_from(*source, 1000);
    ASSERT_EQ(requests.size(), 500U);
    EXPECT_NEAR(499 / to_seconds(requests.back().arrival).value(), rate, 1e-6 * rate);
    const auto own = traffic.at_rate(traffic.own_rate(), 500);
    EXPECT_EQ(requests[17].input_tokens, Traffic::taken_from(*own, 18).back().input_tokens);
  }
  EXPECT_EQ(Traffic::taken_from(*traffic.at_rate(1, 20), 1000).size(), 20U);
}

TEST(Traffic, its_key_tells_other_requests_apart) {
  const std::vector<Request> requests = random_requests(1, 50, 3, 1000, 100);
  std::vector<Request> other = requests;
  ++other[30].output_tokens;
  EXPECT_EQ(Traffic(requests).key(), Traffic(requests).key());
  EXPECT_NE(Traffic(requests).key(), Traffic(other).key());
}

TEST(Traffic, what_an_earlier_prompt_began_with_is_not_fresh) {
  std::vector<Request> requests = random_requests(1, 2, 3, 1, 1);
  for (Request& request : requests) {
    request.input_tokens = 64;
    request.prefix_block_tokens = 16;
  }
  requests[0].prefix_blocks = {1, 2, 3, 4};
  requests[1].prefix_blocks = {1, 2, 9, 4};
  EXPECT_EQ(Traffic(requests).lengths().fresh_inputs, (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(Traffic(requests).lengths().shared_tokens, 32) << "blocks 1 and 2; 4 comes after a block that differs";
  EXPECT_EQ(Traffic(requests).fresh_tokens(1), 64);
  EXPECT_EQ(Traffic(requests).fresh_tokens(2), 96);
  EXPECT_EQ(Traffic(requests).fresh_tokens(4), 192) << "the second time they are other prompts";
}

TEST(Traffic, short_runs_begin_where_prompts_are_as_long_as_usual) {
  std::vector<Request> requests = random_requests(1, 6000, 3, 1000, 100);
  for (size_t i = 0; i < 40; ++i) requests[i].input_tokens = 50'000;
  const Traffic traffic(requests);
  EXPECT_GE(traffic.usual_start(), 200);
  EXPECT_EQ(Traffic(random_requests(1, 500, 3, 1000, 100)).usual_start(), 0) << "too few to choose from";
}

TEST(Traffic, short_runs_begin_where_as_many_as_usual_wait_behind_long_prompts) {
  std::vector<Request> requests = random_requests(1, 6000, 3, 1, 1);
  constexpr Picoseconds second = 1'000'000'000'000;
  Picoseconds now = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const bool is_long = i % 50 == 0, comes_after_a_long_one = i % 50 == 1;
    requests[i].input_tokens = is_long ? 50'000 : 500;
    // The first thousand leave each long prompt alone; later, requests come close behind it.
    const bool waits_for_it = i < 1000 && comes_after_a_long_one;
    requests[i].arrival = now += waits_for_it ? 49 * second : i < 1000 ? second / 50 : second;
  }
  EXPECT_GE(Traffic(requests).usual_start(), 1000);
}

TEST(Traffic, adapters_are_counted_and_tell_requests_apart) {
  const std::vector<Request> plain = random_requests(1, 10, 3, 100, 10);
  std::vector<Request> adapted = plain;
  for (size_t i = 0; i < adapted.size(); ++i) adapted[i].adapter = static_cast<int32_t>(i % 3);
  EXPECT_EQ(Traffic(plain).lengths().adapters, 0);
  EXPECT_EQ(Traffic(adapted).lengths().adapters, 3);
  EXPECT_NE(Traffic(plain).key(), Traffic(adapted).key());
}

TEST(Traffic, refuses_requests_without_a_rate) {
  EXPECT_THROW(Traffic({}), InputError);
  std::vector<Request> at_once = random_requests(1, 3, 3, 10, 10);
  for (Request& request : at_once) request.arrival = 5;
  EXPECT_THROW(Traffic{at_once}, InputError);
}

}  // namespace foretoken::traffic_test
