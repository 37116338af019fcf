// Lengths, made-up load, closed loops and conversations.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/statistics.h"
#include "serving/load/closed_loop.h"
#include "serving/load/lengths.h"
#include "serving/load/priorities.h"
#include "serving/load/sessions.h"
#include "serving/load/synthetic.h"

namespace foretoken::load_test {

std::unique_ptr<LengthSource> fixed(int64_t input, int64_t output) {
  return uniform_lengths({input, input}, {output, output}, 1);
}

std::vector<Request> all_of(RequestSource& source) {
  std::vector<Request> requests;
  while (source.next_arrival()) requests.push_back(source.next());
  return requests;
}

TEST(Priorities, are_drawn_by_their_shares_and_change_nothing_else) {
  const auto plain = [] { return synthetic_load({.rate = 10, .count = 4000}, fixed(10, 5), {}, 3); };
  const std::vector<Request> before = all_of(*plain());
  const std::vector<Request> after = all_of(*with_priorities(plain(), {1, 0, 3}, 3));
  ASSERT_EQ(after.size(), before.size());
  std::map<int32_t, int> counts;
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].arrival, before[i].arrival);
    ++counts[after[i].priority];
  }
  EXPECT_EQ(counts.size(), 2U) << "a share of 0 has no requests";
  EXPECT_NEAR(counts[0], 1000, 100);
  EXPECT_NEAR(counts[2], 3000, 100);
  EXPECT_THROW(with_priorities(plain(), {0, 0}, 3), InputError);
  EXPECT_THROW(with_priorities(plain(), {-1, 2}, 3), InputError);
}

TEST(Lengths, a_range_ratio_spreads_as_vllm_does) {
  const LengthRange range = range_around(1024, 0.2, 1);
  EXPECT_EQ(range.least, 819);
  EXPECT_EQ(range.most, 1229);
  EXPECT_EQ(range_around(4, 0.9, 1).least, 1) << "an output has at least one token";
  EXPECT_EQ(range_around(128, 0, 1).least, 128);
  EXPECT_EQ(range_around(128, 0, 1).most, 128);
}

TEST(Lengths, uniform_draws_reach_both_ends_and_nothing_beyond) {
  const auto source = uniform_lengths({3, 7}, {1, 2}, 5);
  std::set<int64_t> inputs, outputs;
  for (int i = 0; i < 500; ++i) {
    const RequestLengths lengths = source->next();
    inputs.insert(lengths.input_tokens);
    outputs.insert(lengths.output_tokens);
  }
  EXPECT_EQ(inputs, (std::set<int64_t>{3, 4, 5, 6, 7}));
  EXPECT_EQ(outputs, (std::set<int64_t>{1, 2}));
}

TEST(Lengths, another_output_range_leaves_the_prompts_as_they_are) {
  const auto a = uniform_lengths({1, 1000}, {5, 5}, 3), b = uniform_lengths({1, 1000}, {1, 900}, 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a->next().input_tokens, b->next().input_tokens);
}

TEST(Lengths, lognormal_lengths_have_the_mean_asked_for) {
  const auto source = lognormal_lengths({.mean = 500, .sigma = 1}, {.mean = 80, .sigma = 0.5, .most = 200}, 9);
  std::vector<double> inputs;
  for (int i = 0; i < 50000; ++i) {
    const RequestLengths lengths = source->next();
    inputs.push_back(static_cast<double>(lengths.input_tokens));
    EXPECT_GE(lengths.output_tokens, 1);
    EXPECT_LE(lengths.output_tokens, 200);
  }
  EXPECT_NEAR(mean(inputs), 500, 15);
}

TEST(Lengths, observed_pairs_stay_pairs) {
  const auto source = observed_lengths({{10, 1}, {20, 2}}, 2);
  for (int i = 0; i < 50; ++i) {
    const RequestLengths lengths = source->next();
    EXPECT_EQ(lengths.input_tokens, 10 * lengths.output_tokens);
  }
}

TEST(SyntheticLoad, gives_the_count_asked_for_in_order_with_numbers_of_their_own) {
  const auto load = synthetic_load({.rate = 5, .count = 200}, fixed(10, 2), {}, 1);
  const std::vector<Request> requests = all_of(*load);
  ASSERT_EQ(requests.size(), 200U);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].id, static_cast<int64_t>(i));
    EXPECT_GE(requests[i].arrival, i > 0 ? requests[i - 1].arrival : 0);
    EXPECT_TRUE(requests[i].prefix_blocks.empty());
  }
}

TEST(SyntheticLoad, prompts_share_a_prefix_exactly_with_those_of_the_same_text) {
  const auto load = synthetic_load({.count = 100}, fixed(50, 1), {.tokens = 100, .count = 3}, 4);
  std::set<std::vector<int64_t>> texts;
  std::set<int64_t> numbers;
  for (const Request& request : all_of(*load)) {
    EXPECT_EQ(request.input_tokens, 150);
    EXPECT_EQ(request.prefix_blocks.size(), 6U) << "full blocks of 16 in 100 tokens";
    texts.insert(request.prefix_blocks);
    numbers.insert(request.prefix_blocks.begin(), request.prefix_blocks.end());
  }
  EXPECT_EQ(texts.size(), 3U);
  EXPECT_EQ(numbers.size(), 18U) << "different texts have no block in common";
}

TEST(SyntheticLoad, equally_frequent_prefixes_come_in_random_order) {
  const auto uses = [](int64_t requests, int64_t prefixes) {
    const auto load =
        synthetic_load({.count = requests}, fixed(50, 1), {.tokens = 16, .count = prefixes, .equally_often = true}, 4);
    std::map<int64_t, int> count;
    int64_t repeats = 0, before = -1;
    for (const Request& request : all_of(*load)) {
      const int64_t prefix = request.prefix_blocks.at(0);
      ++count[prefix];
      repeats += prefix == before;
      before = prefix;
    }
    EXPECT_LT(repeats, requests / 2);
    return count;
  };
  for (const auto& [prefix, count] : uses(200, 200)) EXPECT_EQ(count, 1) << prefix;
  const auto ten = uses(200, 10);
  EXPECT_EQ(ten.size(), 10U);
  for (const auto& [prefix, count] : ten) EXPECT_EQ(count, 20) << prefix;
}

TEST(SyntheticLoad, prefixes_beyond_all_contexts_and_numbers_are_refused) {
  EXPECT_THROW(synthetic_load({}, fixed(50, 1), {.tokens = 1'000'000'000}, 1), InputError);
  EXPECT_THROW(synthetic_load({}, fixed(50, 1), {.tokens = 16, .count = 1'000'000'000'000}, 1), InputError);
  EXPECT_THROW(session_load({.system_tokens = 1'000'000'000}, fixed(50, 1), 1), InputError);
}

// Serves each request for a fixed time, all at once.
std::vector<Request> serve_for(RequestSource& source, Picoseconds service, size_t& most_in_flight) {
  std::vector<Request> sent;
  std::multimap<Picoseconds, int64_t> ends;
  most_in_flight = 0;
  for (;;) {
    const std::optional<Picoseconds> arrival = source.next_arrival();
    if (!ends.empty() && (!arrival || ends.begin()->first <= *arrival)) {
      const auto [when, id] = *ends.begin();
      ends.erase(ends.begin());
      source.ended(id, when);
    } else if (arrival) {
      sent.push_back(source.next());
      EXPECT_EQ(sent.back().arrival, *arrival);
      ends.emplace(*arrival + service, sent.back().id);
      most_in_flight = std::max(most_in_flight, ends.size());
    } else {
      return sent;
    }
  }
}

TEST(ClosedLoop, keeps_exactly_the_limit_in_flight) {
  const auto load = closed_loop(synthetic_load({.count = 20}, fixed(8, 4), {}, 1), 4);
  size_t most = 0;
  const std::vector<Request> sent = serve_for(*load, 1000, most);
  ASSERT_EQ(sent.size(), 20U);
  EXPECT_EQ(most, 4U);
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i].arrival, static_cast<Picoseconds>(1000 * (i / 4)));
}

TEST(ClosedLoop, far_from_its_limit_is_the_open_loop) {
  const ArrivalSettings arrivals{.rate = 2, .count = 100};
  const auto open = synthetic_load(arrivals, fixed(8, 4), {}, 1);
  const auto closed = closed_loop(synthetic_load(arrivals, fixed(8, 4), {}, 1), 100);
  size_t most = 0;
  const std::vector<Request> sent = serve_for(*closed, 1'000'000, most), expected = all_of(*open);
  ASSERT_EQ(sent.size(), expected.size());
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i].arrival, expected[i].arrival);
}

TEST(Sessions, each_turn_repeats_all_that_was_said_and_waits_for_the_answer) {
  const SessionSettings settings{.starts = {.rate = 1, .count = 6}, .turns = 3, .system_tokens = 64, .think_s = 2};
  const auto load = session_load(settings, fixed(40, 24), 3);
  size_t most = 0;
  constexpr Picoseconds service = 500'000'000'000;
  const std::vector<Request> sent = serve_for(*load, service, most);
  ASSERT_EQ(sent.size(), 18U);
  std::map<int64_t, std::vector<Request>> by_session;
  for (const Request& request : sent) by_session[request.session].push_back(request);
  ASSERT_EQ(by_session.size(), 6U);
  for (const auto& [session, turns] : by_session) {
    ASSERT_EQ(turns.size(), 3U);
    EXPECT_EQ(turns[0].input_tokens, 104);
    for (size_t i = 1; i < turns.size(); ++i) {
      EXPECT_EQ(turns[i].input_tokens, turns[i - 1].input_tokens + 24 + 40);
      EXPECT_GE(turns[i].arrival, turns[i - 1].arrival + service);
      const auto& before = turns[i - 1].prefix_blocks;
      ASSERT_GE(turns[i].prefix_blocks.size(), before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), turns[i].prefix_blocks.begin()));
    }
  }
  // Only the system prompt is shared between conversations: 4 blocks of 16.
  const auto &a = by_session[0][2].prefix_blocks, &b = by_session[1][2].prefix_blocks;
  EXPECT_EQ(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin(), 4);
}

TEST(Sessions, tools_answer_sooner_than_people) {
  const auto last_arrival = [](double tool_share) {
    const SessionSettings settings{
        .starts = {.count = 40}, .turns = 5, .think_s = 10, .tool_s = 0.1, .tool_share = tool_share};
    const auto load = session_load(settings, fixed(8, 4), 3);
    size_t most = 0;
    return serve_for(*load, 1, most).back().arrival;
  };
  EXPECT_LT(last_arrival(1), last_arrival(0) / 20);
}

TEST(Sessions, a_conversation_ends_once_it_is_long_enough) {
  const auto load = session_load({.starts = {.count = 1}, .turns = 100, .longest = 150}, fixed(30, 20), 1);
  size_t most = 0;
  EXPECT_EQ(serve_for(*load, 1, most).size(), 3U);
}

// A model's length is an engine's to know: what it refuses, the next turn would only repeat.
TEST(Sessions, a_conversation_ends_at_its_first_rejected_turn) {
  std::unique_ptr<RequestSource> load = session_load({.starts = {.count = 2}, .turns = 100}, fixed(30, 20), 1);
  load = closed_loop(with_priorities(std::move(load), {1, 1}, 1), 10);
  std::map<int64_t, int64_t> turns;
  while (const auto arrival = load->next_arrival()) {
    const Request request = load->next();
    ++turns[request.session];
    request.input_tokens < 120 ? load->ended(request.id, *arrival) : load->rejected(request.id, *arrival);
  }
  EXPECT_EQ(turns, (std::map<int64_t, int64_t>{{0, 3}, {1, 3}}));
}

TEST(Sessions, settings_without_meaning_are_refused) {
  EXPECT_THROW(check_sessions({.turns = 0}), InputError);
  EXPECT_THROW(check_sessions({.tool_share = 2}), InputError);
  EXPECT_THROW(check_sessions({.starts = {.burstiness = 0}}), InputError);
}

}  // namespace foretoken::load_test
