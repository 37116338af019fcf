#include "validate/serving/arrival_window.h"

#include <gtest/gtest.h>

namespace foretoken::arrival_window_test {

Picoseconds at(double seconds) {
  return to_picoseconds(Seconds(seconds));
}

RequestRecord served(int id, double arrival, double scheduled, double seconds, int64_t tokens) {
  return {.id = id,
          .output_tokens = tokens,
          .arrival = at(arrival),
          .scheduled = at(scheduled),
          .last_token = at(scheduled + seconds)};
}

TEST(ArrivalWindow, neither_filling_nor_emptying_engines_lower_the_rate) {
  ArrivalWindow window;
  for (int i = 0; i <= 1000; ++i) {  // ten a second; every other one is long
    window.request_ended(served(i, 0.1 * i, 0.1 * i, i % 2 == 0 ? 5 : 35, i % 2 == 0 ? 10 : 70));
  }
  ASSERT_TRUE(window.rates());
  EXPECT_NEAR(window.rates()->requests, 10, 0.05) << "over the whole run it would be 7.4";
  EXPECT_NEAR(window.rates()->output_tokens, 400, 2);
}

TEST(ArrivalWindow, a_queue_that_grows_shows_what_the_engine_gets_through) {
  ArrivalWindow window;
  for (int i = 0; i <= 1000; ++i) window.request_ended(served(i, 0.1 * i, 0.125 * i, 1, 1));  // ten come, eight go
  ASSERT_TRUE(window.rates());
  EXPECT_NEAR(window.rates()->requests, 8, 0.05);
}

TEST(ArrivalWindow, too_few_or_too_slow_requests_have_no_steady_part) {
  EXPECT_FALSE(ArrivalWindow().rates());
  ArrivalWindow window;
  for (int i = 0; i < 10; ++i) window.request_ended(served(i, i, i, 9, 1));
  EXPECT_FALSE(window.rates());
}

}  // namespace foretoken::arrival_window_test
