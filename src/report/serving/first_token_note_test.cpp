#include "report/serving/first_token_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"

namespace foretoken::first_token_note_test {

using testing::HasSubstr;

TEST(FirstTokenNote, says_what_published_runs_measured_where_waiting_is_not_all_simulated) {
  SimulationConfig config;
  config.replicas.resize(2);
  EXPECT_EQ(first_token_note(config), "");
  config.replicas.back().first_token_doubt = {.low = 0.5, .high = 2};
  EXPECT_THAT(first_token_note(config), HasSubstr("attention ranks that take every step together measured 0.5 to 2 "));
  config.disaggregation.emplace();
  EXPECT_EQ(first_token_note(config), "") << "pools of which nothing was published";
  config.disaggregation->first_token_doubt = {.low = 0.4, .high = 3.5};
  EXPECT_THAT(first_token_note(config), HasSubstr("separate prefill and decode workers measured 0.4 to 3.5 "));
}

TEST(FirstTokenNote, stands_beside_plans_whose_limits_depend_on_the_first_token) {
  ServingQuestion question = small_question();
  const EnginePool pool{.engine = {.device = "l4", .engine = "sglang"}};
  ServingLayout layout{.pool = pool, .decode = pool};
  EXPECT_THAT(first_token_note(question, layout),
              HasSubstr("separate prefill and decode workers measured 0.4 to 3.5 "));
  question.slos = parse_slos("tpot<4ms@p95", "slo");
  EXPECT_EQ(first_token_note(question, layout), "") << "no limit on the first token";
  question.slos = parse_slos("itl<60ms@p95", "slo");
  EXPECT_EQ(first_token_note(question, layout), "");
  question.slos = parse_slos("e2el<400ms@p95", "slo");
  EXPECT_NE(first_token_note(question, layout), "");
  layout.decode.reset();
  EXPECT_EQ(first_token_note(question, layout), "") << "one pool";
  layout.pool.engine.engine = "trtllm";
  layout.pool.engine.attention_ranks = 8;
  EXPECT_THAT(first_token_note(question, layout), HasSubstr("attention ranks that take every step together"));
}

}  // namespace foretoken::first_token_note_test
