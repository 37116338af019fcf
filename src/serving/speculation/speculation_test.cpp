#include "serving/speculation/speculation.h"

#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::speculation_test {

Speculation drafts_of(double rate, int64_t drafts) {
  return {.draft_tokens = drafts, .verified_tokens = drafts, .acceptance = Acceptance::constant(rate, drafts)};
}

struct Counted final : public RunObserver {
  void request_ended(const RequestRecord& record) override { requests.push_back(record); }
  void step_ran(const StepRecord& step) override {
    steps += step.repeats;
    decodes += step.decode_tokens * step.repeats;
    accepted += step.accepted_tokens;
  }
  void drafts_verified(int64_t drafts, int64_t stand) override {
    verified_drafts += drafts;
    accepted_drafts += stand;
  }
  std::vector<RequestRecord> requests;
  int64_t steps = 0, decodes = 0, accepted = 0, verified_drafts = 0, accepted_drafts = 0;
};

Counted serve(const Speculation& speculation, const std::vector<Request>& requests, uint64_t seed = 0,
              StepTimes* given_times = nullptr) {
  LinearTimes times({});
  ListedRequests source(requests);
  Counted counted;
  simulate({.replicas = {{.options = {.num_gpu_blocks = 4000, .speculation = speculation},
                          .times = given_times != nullptr ? given_times : &times}},
            .seed = seed},
           source, counted);
  return counted;
}

std::vector<Request> one_request(int64_t output) {
  return {{.id = 0, .input_tokens = 100, .output_tokens = output, .prefix_blocks = {}}};
}

TEST(Speculation, that_accepts_nothing_decodes_token_by_token) {
  const Counted counted = serve(drafts_of(0, 3), one_request(50));
  EXPECT_EQ(counted.steps, 50);
  EXPECT_EQ(counted.accepted, 0);
  EXPECT_EQ(counted.verified_drafts, 3 * 49);
}

TEST(Speculation, that_accepts_all_takes_a_share_of_the_steps) {
  const Counted counted = serve(drafts_of(1, 3), one_request(41));
  EXPECT_EQ(counted.steps, 1 + 10);  // the prompt's token, then four at a time
  EXPECT_EQ(counted.accepted, 30);
}

TEST(Speculation, never_yields_more_tokens_than_asked_for) {
  const Counted counted = serve(drafts_of(1, 7), one_request(4));
  ASSERT_EQ(counted.requests.size(), 1U);
  EXPECT_EQ(counted.requests.front().output_tokens, 4);
  EXPECT_EQ(counted.accepted, 2);         // with the decode's own token the three that were left
  EXPECT_EQ(counted.accepted_drafts, 7);  // vLLM counts what the sampler accepts
}

TEST(Speculation, yields_what_its_acceptance_promises) {
  const Speculation speculation = drafts_of(0.7, 4);
  const Counted counted = serve(speculation, random_requests(1, 200, 50, 100, 400));
  const double mean = 1 + static_cast<double>(counted.accepted_drafts) / static_cast<double>(counted.decodes);
  EXPECT_NEAR(mean, speculation.acceptance.expected_tokens(4), 0.03);
  EXPECT_EQ(counted.verified_drafts, 4 * counted.decodes);
}

TEST(Speculation, has_the_same_luck_however_fast_steps_are) {
  const std::vector<Request> requests = random_requests(2, 50, 20, 100, 100);
  LinearTimes slow({.step = 0.05});
  const Counted one = serve(drafts_of(0.6, 3), requests, 5), two = serve(drafts_of(0.6, 3), requests, 5, &slow);
  EXPECT_EQ(one.accepted_drafts, two.accepted_drafts);
  EXPECT_NE(one.accepted_drafts, serve(drafts_of(0.6, 3), requests, 6).accepted_drafts);
}

TEST(Speculation, stops_above_a_number_of_sequences) {
  Speculation speculation = drafts_of(1, 3);
  speculation.most_sequences = 4;
  std::vector<Request> crowd;
  for (int64_t i = 0; i < 5; ++i) {
    crowd.push_back({.id = i, .input_tokens = 10, .output_tokens = 20, .prefix_blocks = {}});
  }
  EXPECT_EQ(serve(speculation, crowd).accepted, 0);
  crowd.pop_back();
  EXPECT_GT(serve(speculation, crowd).accepted, 0);
}

TEST(Speculation, requests_of_equal_length_stay_together_where_all_accept_the_same) {
  std::vector<Request> requests = one_request(400);
  requests.push_back(requests.front());
  requests.back().id = requests.front().id + 1;
  Speculation own = drafts_of(0.5, 3), same = own;
  same.same_for_all = true;
  const Counted together = serve(same, requests), apart = serve(own, requests);
  ASSERT_EQ(together.requests.size(), 2u);
  EXPECT_EQ(together.requests[0].last_token, together.requests[1].last_token);
  ASSERT_EQ(apart.requests.size(), 2u);
  EXPECT_NE(apart.requests[0].last_token, apart.requests[1].last_token);
}

}  // namespace foretoken::speculation_test
