// A rate in the middle, which more layouts serve than the rates of the quick test: half a minute of search.
#include <gtest/gtest.h>

#include "plan/serving/offers_test_support.h"

namespace foretoken::other_offers_slow_test {

TEST(OtherOffers, another_device_changes_no_row_at_a_rate_that_several_layouts_serve) {
  expect_rows_apart(25);
}

}  // namespace foretoken::other_offers_slow_test
