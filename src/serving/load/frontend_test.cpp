#include "serving/load/frontend.h"

#include <gtest/gtest.h>

#include "serving/load/closed_loop.h"
#include "serving/test_support.h"

namespace foretoken {
namespace {

constexpr Picoseconds millisecond = one_second / 1000;
const FrontCosts costs{.latency = Seconds(0.008), .request = Seconds(0.001), .token = Seconds(1e-6)};

std::unique_ptr<RequestSource> sent(const std::vector<double>& at) {
  std::vector<Request> requests;
  for (const double when : at) {
    requests.push_back({.id = static_cast<int64_t>(requests.size()),
                        .arrival = to_picoseconds(Seconds(when)),
                        .input_tokens = 1000,
                        .output_tokens = 10,
                        .prefix_blocks = {}});
  }
  return std::make_unique<ListedRequests>(std::move(requests));
}

TEST(Frontend, requests_sent_together_reach_the_engine_one_after_the_other) {
  const std::unique_ptr<RequestSource> source = through_frontend(sent({0, 0, 0, 1}), costs);
  for (const int64_t expected : {10, 12, 14, 1010}) {  // 2 ms of work each, then 8 ms
    EXPECT_EQ(source->next_arrival(), expected * millisecond);
    EXPECT_EQ(source->next().arrival, expected < 1000 ? 0 : one_second) << "the client's clock starts when it sends";
  }
  EXPECT_FALSE(source->next_arrival());
}

TEST(Frontend, what_a_client_sends_after_an_answer_is_not_held_up_by_later_answers) {
  const std::unique_ptr<RequestSource> source = through_frontend(closed_loop(sent({0, 0, 0, 0}), 2), costs);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(source->next_arrival());
    source->next();
  }
  EXPECT_FALSE(source->next_arrival()) << "both are in flight";
  source->ended(0, one_second);
  EXPECT_EQ(source->next_arrival(), one_second + 10 * millisecond);
  source->ended(1, one_second + 5 * millisecond);
  EXPECT_EQ(source->next_arrival(), one_second + 10 * millisecond);
  EXPECT_EQ(source->next().arrival, one_second);
  EXPECT_EQ(source->next_arrival(), one_second + 15 * millisecond);
}

TEST(Frontend, costs_nothing_where_it_has_no_costs) {
  const std::unique_ptr<RequestSource> source = through_frontend(sent({0.5}), {});
  EXPECT_EQ(source->next_arrival(), one_second / 2);
}

}  // namespace
}  // namespace foretoken
