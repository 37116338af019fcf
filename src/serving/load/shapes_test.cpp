// Load of newer shapes: passages, pictures, prompts alone, thoughts, agents.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/load/images.h"
#include "serving/load/passages.h"
#include "serving/load/pooling.h"
#include "serving/load/sessions.h"
#include "serving/load/synthetic.h"
#include "serving/load/thinking.h"
#include "serving/results/thinking_metrics.h"
#include "serving/test_support.h"

namespace foretoken::load_shapes_test {

std::unique_ptr<LengthSource> fixed(int64_t input, int64_t output) {
  return uniform_lengths({input, input}, {output, output}, 1);
}

std::unique_ptr<RequestSource> plain(int64_t count, const PrefixSettings& prefix = {}) {
  return synthetic_load({.rate = 10, .count = count}, fixed(40, 8), prefix, 3);
}

std::vector<Request> all_of(RequestSource& source) {
  std::vector<Request> requests;
  while (source.next_arrival()) requests.push_back(source.next());
  return requests;
}

SchedulerOptions roomy() {
  return {.max_num_seqs = 64, .num_gpu_blocks = 20'000};
}

double hit_share(RequestSource& source) {
  LinearTimes times({});
  RecordedRun seen;
  simulate({.replicas = {{.options = roomy(), .times = &times}}}, source, seen);
  double cached = 0, input = 0;
  for (const RequestRecord& record : seen.requests) {
    cached += static_cast<double>(record.cached_tokens);
    input += static_cast<double>(record.input_tokens);
  }
  return cached / input;
}

TEST(Passages, come_on_top_of_the_prompt_and_change_nothing_else) {
  const std::vector<Request> before = all_of(*plain(200));
  const std::vector<Request> after =
      all_of(*with_passages(plain(200), {.per_request = 3, .tokens = 100, .corpus = 50}, 1));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].input_tokens, before[i].input_tokens + 300);
    EXPECT_EQ(after[i].output_tokens, before[i].output_tokens);
    EXPECT_EQ(after[i].arrival, before[i].arrival);
    EXPECT_EQ(after[i].prefix_blocks.size(), 300U / 16);
    const std::set<int64_t> passages(after[i].prefix_blocks.begin(), after[i].prefix_blocks.end());
    EXPECT_EQ(passages.size(), 3U) << "a passage is found once";
  }
}

TEST(Passages, the_same_ones_are_found_in_the_cache_the_more_often_the_more_popular) {
  double before = -1;
  for (const double skew : {0.0, 1.0, 2.0}) {
    const auto load = with_passages(plain(300), {.per_request = 2, .tokens = 64, .corpus = 1000, .skew = skew}, 1);
    const double share = hit_share(*load);
    EXPECT_GT(share, before) << skew;
    before = share;
  }
  const PassageSettings two{.per_request = 2, .tokens = 64, .corpus = 2};
  PassageSettings sorted = two;
  sorted.popular_first = true;
  EXPECT_GT(hit_share(*with_passages(plain(300), sorted, 1)), hit_share(*with_passages(plain(300), two, 1)))
      << "in one order prompts begin alike";
}

TEST(Passages, follow_a_prefix_that_prompts_share) {
  const std::vector<Request> requests =
      all_of(*with_passages(plain(5, {.tokens = 64}), {.per_request = 1, .tokens = 32, .corpus = 10}, 1));
  for (const Request& request : requests) {
    ASSERT_EQ(request.prefix_blocks.size(), 64U / 16 + 32U / 16);
    EXPECT_EQ(request.prefix_blocks[0], requests[0].prefix_blocks[0]);
  }
}

TEST(Passages, settings_without_sense_are_refused) {
  EXPECT_THROW(with_passages(plain(1), {.per_request = 0}, 1), InputError);
  EXPECT_THROW(with_passages(plain(1), {.per_request = 5, .corpus = 4}, 1), InputError);
  EXPECT_THROW(with_passages(plain(1), {.per_request = 1, .tokens = 3}, 1), InputError);
  class Numbered final : public RequestSource {
   public:
    std::optional<Picoseconds> next_arrival() override { return 0; }
    Request next() override {
      return {.input_tokens = 600, .output_tokens = 1, .prefix_block_tokens = 512, .prefix_blocks = {1}};
    }
  };
  EXPECT_THROW(with_passages(std::make_unique<Numbered>(), {.per_request = 1}, 1)->next(), InputError);
}

TEST(Images, tokens_of_pictures_lie_one_after_the_other_behind_the_shared_prefix) {
  const ImageSettings settings{.sizes = {{.patches = 400, .tokens = 100}, {.patches = 40, .tokens = 10}},
                               .per_request = 3};
  const std::vector<Request> requests = all_of(*with_images(plain(50, {.tokens = 32}), settings, 1));
  for (const Request& request : requests) {
    ASSERT_EQ(request.images.size(), 3U);
    int64_t next = 32;
    for (const ImageInput& image : request.images) {
      EXPECT_EQ(image.first_token, next);
      next += image.tokens;
    }
    EXPECT_EQ(request.input_tokens, 40 + next);
  }
}

TEST(Images, a_share_of_requests_has_them) {
  const ImageSettings settings{.sizes = {{.patches = 400, .tokens = 100}}, .share = 0.25};
  const std::vector<Request> requests = all_of(*with_images(plain(4000), settings, 1));
  const auto with = std::count_if(requests.begin(), requests.end(), [](const Request& r) { return !r.images.empty(); });
  EXPECT_NEAR(static_cast<double>(with), 1000, 100);
}

TEST(Pooling, prompts_alone_end_with_their_last_step_and_sample_nothing) {
  class NothingSampled final : public StepTimes {
   public:
    Estimate step_seconds(const StepBatch& batch) override {
      EXPECT_EQ(batch.sampled_tokens(), 0);
      EXPECT_EQ(batch.decodes, 0);
      return exactly(0.001);
    }
  };
  NothingSampled times;
  RecordedRun seen;
  const auto load = pooled_load(plain(100));
  simulate({.replicas = {{.options = roomy(), .times = &times}}}, *load, seen);
  ASSERT_EQ(seen.requests.size(), 100U);
  int64_t computed = 0;
  for (const StepRecord& step : seen.steps) computed += step.prefill_tokens;
  EXPECT_EQ(computed, 100 * 40) << "each token of a prompt once";
  for (const RequestRecord& record : seen.requests) {
    EXPECT_EQ(record.output_tokens, 0);
    EXPECT_EQ(record.ttft(), record.e2el());
  }
}

TEST(Pooling, a_prompt_may_be_as_long_as_the_model_allows) {
  LinearTimes times({});
  SchedulerOptions options = roomy();
  options.max_model_len = 40;
  for (const bool pooled : {false, true}) {
    RecordedRun seen;
    const auto load = pooled ? pooled_load(plain(1)) : plain(1);
    simulate({.replicas = {{.options = options, .times = &times}}}, *load, seen);
    EXPECT_EQ(seen.requests.front().outcome, pooled ? RequestOutcome::completed : RequestOutcome::rejected);
  }
}

ThinkingSettings thoughts(double mean, double share = 1) {
  return {.usual = {.mean = mean, .sigma = 1}, .hard = {.mean = 10 * mean, .sigma = 1}, .share = share};
}

TEST(Thinking, comes_on_top_of_the_answer_with_the_mean_asked_for) {
  ThinkingSettings settings = thoughts(500, 0.5);
  settings.hard_share = 0.1;
  const auto lengths = with_thinking(fixed(40, 8), settings, 5);
  double thinking = 0;
  int64_t thinkers = 0;
  for (int i = 0; i < 40'000; ++i) {
    const RequestLengths one = lengths->next();
    EXPECT_EQ(one.output_tokens, 8 + one.thinking_tokens);
    EXPECT_EQ(one.input_tokens, 40);
    thinking += static_cast<double>(one.thinking_tokens);
    thinkers += one.thinking_tokens > 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(thinkers), 20'000, 500);
  EXPECT_NEAR(thinking / static_cast<double>(thinkers) / (0.9 * 500 + 0.1 * 5000), 1, 0.1);
}

TEST(Thinking, an_answer_begins_with_the_token_behind_the_thoughts) {
  LinearTimes times({.step = 0.01, .token = 0, .context_token = 0});
  ListedRequests source({{.id = 0, .arrival = 0, .input_tokens = 10, .output_tokens = 30, .thinking_tokens = 20}});
  RecordedRun seen;
  simulate({.replicas = {{.options = roomy(), .times = &times}}}, source, seen);
  EXPECT_EQ(seen.requests.front().answered, 21 * one_second / 100);
  EXPECT_EQ(seen.requests.front().first_token, one_second / 100);
  EXPECT_EQ(seen.requests.front().last_token, 30 * one_second / 100);
}

TEST(Thinking, is_counted_apart_and_a_cut_answer_is_named) {
  LinearTimes times({});
  ListedRequests source({{.id = 0, .arrival = 0, .input_tokens = 10, .output_tokens = 30, .thinking_tokens = 20},
                         {.id = 1, .arrival = 0, .input_tokens = 10, .output_tokens = 900, .thinking_tokens = 800},
                         {.id = 2, .arrival = 0, .input_tokens = 10, .output_tokens = 5}});
  SchedulerOptions options = roomy();
  options.max_model_len = 100;
  ThinkingMetrics metrics;
  simulate({.replicas = {{.options = options, .times = &times}}}, source, metrics);
  const ThinkingSummary summary = metrics.summary({99});
  EXPECT_EQ(summary.requests, 2);
  EXPECT_EQ(summary.cut, 1);
  EXPECT_EQ(summary.tokens, 20 + 90);
  EXPECT_GT(summary.answer.mean_ms, 0);
}

// Sends each turn and answers it at once.
std::vector<Request> play(RequestSource& source) {
  std::vector<Request> requests;
  while (const auto arrival = source.next_arrival()) {
    requests.push_back(source.next());
    source.ended(requests.back().id, *arrival + one_second);
  }
  return requests;
}

TEST(Sessions, thoughts_are_not_repeated_and_what_stands_behind_them_is_computed_again) {
  const SessionSettings settings{.starts = {.rate = 1, .count = 1}, .turns = 3};
  const auto load = session_load(settings, with_thinking(fixed(160, 80), thoughts(500), 1), 1);
  const std::vector<Request> turns = play(*load);
  ASSERT_EQ(turns.size(), 3U);
  for (size_t i = 1; i < turns.size(); ++i) {
    EXPECT_EQ(turns[i].input_tokens, turns[i - 1].input_tokens + 80 + 160) << "the answer, and what is new";
    EXPECT_EQ(turns[i - 1].prefix_blocks.size(), static_cast<size_t>(turns[i - 1].input_tokens / 16))
        << "blocks of the output are nobody's";
    for (size_t block = 0; block < turns[i - 1].prefix_blocks.size(); ++block) {
      EXPECT_EQ(turns[i].prefix_blocks[block], turns[i - 1].prefix_blocks[block]);
    }
  }
}

TEST(Sessions, agents_fan_out_and_their_conversation_goes_on_when_all_have_ended) {
  const SessionSettings settings{
      .starts = {.rate = 1, .count = 4}, .turns = 3, .system_tokens = 32, .subagents = 5, .subagent_turns = 2};
  const auto load = session_load(settings, fixed(16, 10), 1);
  const std::vector<Request> requests = play(*load);
  EXPECT_EQ(requests.size(), 4U * (3 + 2 * 5 * 2)) << "after each turn but the last five agents, two turns each";
  std::vector<Request> own, agents;
  for (const Request& request : requests) {
    if (request.session == 0) own.push_back(request);
    if (request.session >= 4) agents.push_back(request);
  }
  ASSERT_EQ(own.size(), 3U);
  EXPECT_EQ(agents.size(), 4U * 2 * 5 * 2);
  EXPECT_EQ(own[1].input_tokens, own[0].input_tokens + 10 + 16 + 5 * 10) << "with the answers of all agents";
  EXPECT_EQ(agents.front().input_tokens, 32 + 16) << "an agent begins with the system prompt";
}

TEST(Sessions, without_a_share_no_agents_are_sent) {
  const SessionSettings settings{.starts = {.rate = 1, .count = 3}, .turns = 4, .subagents = 5, .subagent_share = 0};
  const auto load = session_load(settings, fixed(16, 10), 1);
  EXPECT_EQ(play(*load).size(), 12U);
}

TEST(Sessions, an_agent_that_is_rejected_does_not_hold_up_its_conversation) {
  const SessionSettings settings{.starts = {.rate = 1, .count = 1}, .turns = 2, .subagents = 3};
  const auto load = session_load(settings, fixed(16, 10), 1);
  std::vector<Request> requests;
  while (const auto arrival = load->next_arrival()) {
    requests.push_back(load->next());
    const Request& last = requests.back();
    last.session == 0 ? load->ended(last.id, *arrival) : load->rejected(last.id, *arrival);
  }
  ASSERT_EQ(requests.size(), 2U + 3);
  EXPECT_EQ(requests.back().session, 0);
  EXPECT_EQ(requests.back().input_tokens, 16 + 10 + 16) << "nobody had anything to report";
}

}  // namespace foretoken::load_shapes_test
