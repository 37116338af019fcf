#include "report/serving/first_token_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace foretoken::first_token_note_test
