#include "plan/serving/stored_evaluator.h"

#include <unistd.h>

#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/serving/plan_result_json.h"
#include "plan/serving/search_test_support.h"
#include "plan/serving/serving_search.h"

namespace foretoken::stored_evaluator_test {

constexpr SearchLimits few{.quick = 6, .full = 2, .round = 2};

// All that a result holds, as text.
std::string text_of(const ServingSearchResult& result) {
  Json all = Json::array();
  for (const PlanPoint& point : result.points) {
    all.push(point.layout.key()).push(effort_name(point.effort)).push(point_json(point));
  }
  for (const size_t place : result.ranking) all.push(place);
  for (const PlanRun& run : result.curve) all.push(run.rate).push(run.achieved_ms.front()).push(run.goodput);
  for (const int64_t pruned : result.pruned) all.push(pruned);
  all.push(result.layouts).push(result.beaten).push(result.unexplored).push(result.frontier.size());
  return all.dump();
}

class StoredSearch : public testing::Test {
 protected:
  StoredSearch()
      : file_(std::filesystem::path(testing::TempDir()) /
              (std::string("foretoken_search_") + testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
               std::to_string(getpid()) + ".sqlite")) {}
  ~StoredSearch() override { std::filesystem::remove(file_); }

  std::string stored(unsigned threads, int64_t processes = 0) const {
    ResultStore store(file_, stored_question(question_, small_traffic(), "roofline"));
    const auto evaluator = stored_evaluator(question_, facts_, small_traffic(), threads, store, processes);
    return text_of(search_serving_layouts(question_, *evaluator, few));
  }
  std::string plain() const {
    return text_of(search_serving_layouts(question_, *threaded_evaluator(question_, facts_, small_traffic(), 1), few));
  }

  std::filesystem::path file_;
  ServingQuestion question_ = small_question();
  ServingFacts facts_ = roofline_facts();
};

TEST_F(StoredSearch, finds_the_same_with_a_store_and_computes_nothing_twice) {
  const std::string expected = plain();
  EXPECT_EQ(stored(2), expected);
  const StoreCounts first = ResultStore::counts_of(file_);
  EXPECT_GT(first.results, 0);
  EXPECT_EQ(first.begun, first.results);
  EXPECT_EQ(stored(1), expected);
  EXPECT_EQ(ResultStore::counts_of(file_).begun, first.begun);
}

TEST_F(StoredSearch, several_at_once_find_the_same_and_share_the_work) {
  const std::string expected = plain();
  std::string other;
  std::thread together([&] { other = stored(1); });
  const std::string own = stored(2);
  together.join();
  EXPECT_EQ(own, expected);
  EXPECT_EQ(other, expected);
  const StoreCounts counts = ResultStore::counts_of(file_);
  EXPECT_EQ(counts.begun, counts.results);
  EXPECT_EQ(counts.claimed, 0);
}

TEST_F(StoredSearch, two_workers_who_know_of_each_other_find_the_same) {
  const std::string expected = plain();
  std::string other;
  std::thread together([&] { other = stored(1, 2); });
  const std::string own = stored(1, 2);
  together.join();
  EXPECT_EQ(own, expected);
  EXPECT_EQ(other, expected);
}

TEST_F(StoredSearch, other_limits_or_facts_are_another_question) {
  const std::string own = stored_question(question_, small_traffic(), "roofline");
  EXPECT_NE(stored_question(question_, small_traffic(), "measured"), own);
  ServingQuestion tighter = question_;
  tighter.slos = parse_slos("ttft<50ms@p95,tpot<4ms@p95", "slo");
  EXPECT_NE(stored_question(tighter, small_traffic(), "roofline"), own);
  EXPECT_NE(stored_question(question_, Traffic(random_requests(4, 400, 10, 600, 60)), "roofline"), own);
}

TEST_F(StoredSearch, a_result_that_is_not_ours_is_named) {
  {
    ResultStore store(file_, "question");
    const std::string key = "quick " + ServingLayout{}.key();
    store.claim(std::span(&key, 1));
    store.finish(key, "{\"capacity\": 3}");
  }
  ResultStore store(file_, "question");
  const std::vector<ServingLayout> layouts = {{}};
  EXPECT_THROW(stored_evaluator(question_, facts_, small_traffic(), 1, store)->evaluate(layouts, Effort::quick),
               InputError);
}

TEST(PlanResultJson, comes_back_bit_for_bit) {
  PlanPoint point{
      .layout = {}, .effort = Effort::full, .capacity = {.value = 0.1 + 0.2, .low = 1e-300, .high = 1.0 / 3}};
  point.kv_tokens = 123'456'789'012;
  point.runs = {{.rate = 2.0 / 3,
                 .requests = 1000,
                 .attained = true,
                 .achieved_ms = {12.345678901234567, 50},
                 .output_tokens_per_s = 1e5 / 7,
                 .tokens_per_s_of_user = 0,
                 .goodput = std::numeric_limits<double>::denorm_min(),
                 .failed_share = 0.001}};
  const Json json = parse_json(point_json(point).dump(0), "test");
  const PlanPoint read = read_point(JsonView(json, "test"), point.layout, point.effort);
  EXPECT_EQ(read.capacity.value, point.capacity.value);
  EXPECT_EQ(read.capacity.low, point.capacity.low);
  EXPECT_EQ(read.capacity.high, point.capacity.high);
  EXPECT_EQ(read.kv_tokens, point.kv_tokens);
  ASSERT_EQ(read.runs.size(), 1U);
  EXPECT_EQ(read.runs[0].rate, point.runs[0].rate);
  EXPECT_EQ(read.runs[0].achieved_ms, point.runs[0].achieved_ms);
  EXPECT_EQ(read.runs[0].goodput, point.runs[0].goodput);
  EXPECT_EQ(read.runs[0].attained, true);

  for (const LayoutJudgement& judgement :
       {LayoutJudgement{.pruned = PruneReason::too_few_requests, .most_requests_per_s = 0.1},
        LayoutJudgement{.pruned = {},
        .most_requests_per_s = 7,
        .shape = {.prompt_share = 0.1, .ttft_slack = 0.2, .fresh_share = 0.3, .alone_share = 0.4},
        .alone_ms = {0.1 + 0.2, 5},
        .reachable = {64, 8192},
        .filled_blocks = {1234, 567}}}) {
    const Json text = parse_json(judgement_json(judgement).dump(0), "test");
    const LayoutJudgement back = read_judgement(JsonView(text, "test"));
    EXPECT_EQ(back.pruned, judgement.pruned);
    EXPECT_EQ(back.most_requests_per_s, judgement.most_requests_per_s);
    EXPECT_EQ(back.shape.prompt_share, judgement.shape.prompt_share);
    EXPECT_EQ(back.shape.ttft_slack, judgement.shape.ttft_slack);
    EXPECT_EQ(back.shape.fresh_share, judgement.shape.fresh_share);
    EXPECT_EQ(back.shape.alone_share, judgement.shape.alone_share);
    EXPECT_EQ(back.alone_ms, judgement.alone_ms);
    EXPECT_EQ(back.reachable, judgement.reachable);
    EXPECT_EQ(back.filled_blocks, judgement.filled_blocks);
  }
}

}  // namespace foretoken::stored_evaluator_test
