#include "serving/speculation/acceptance_table.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/test_support.h"

namespace foretoken::acceptance_table_test {

AcceptanceTable table() {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "acceptance_table_test.csv";
  std::ofstream(file) << "model,draft_method,thinking,draft_tokens,mean_acceptance_length\n"
                         "small-1,mtp,on,1,1.8\nsmall-1,mtp,on,2,2.4\nsmall-1,mtp,on,3,2.9\n"
                         "small-1,mtp,off,1,1.6\nsmall-1,mtp,off,2,2.0\nsmall-1,mtp,off,3,2.1\n"
                         "big-2,mtp,on,1,1.9\nbig-2,eagle3,on,5,3\n";
  return AcceptanceTable(file);
}

TEST(AcceptanceTable, has_the_mean_of_the_rows_of_a_model) {
  EXPECT_NEAR(table().of_model("org/Small-1-FP8", "mtp", 1).expected_tokens(1), 1.7, 1e-12);
  EXPECT_NEAR(table().of_model("small-1", "mtp", 3).expected_tokens(3), 2.5, 1e-12);
}

TEST(AcceptanceTable, finds_nothing_for_a_model_or_a_number_of_drafts_that_was_not_measured) {
  EXPECT_NEAR(table().find("small-1", "mtp", 1)->expected_tokens(1), 1.7, 1e-12);
  EXPECT_FALSE(table().find("other", "mtp", 1));
  EXPECT_FALSE(table().find("small-1", "mtp", 4));
  EXPECT_THROW(table().of_model("other", "mtp", 1), InputError);
}

TEST(AcceptanceTable, says_what_was_measured) {
  EXPECT_THROW(table().of_model("small-1", "medusa", 1), InputError);
  EXPECT_THROW(table().of_model("small-1", "mtp", 4), InputError);
}

TEST(AcceptanceTable, takes_one_rate_where_shorter_drafts_were_not_measured) {
  const Acceptance acceptance = table().of_model("big-2", "eagle3", 5);
  EXPECT_NEAR(acceptance.expected_tokens(5), 3, 1e-9);
  const std::vector<double>& reached = acceptance.reached();
  EXPECT_NEAR(reached[1] / reached[0], reached[4] / reached[3], 1e-9);
}

TEST(AcceptanceTable, levels_chances_that_would_rise_and_keeps_the_mean) {
  const Acceptance acceptance = acceptance_from_lengths({{1, 1.5}, {2, 2.2}, {3, 2.1}}, 3);
  EXPECT_NEAR(acceptance.expected_tokens(3), 2.1, 1e-12);
  for (size_t i = 1; i < 3; ++i) EXPECT_LE(acceptance.reached()[i], acceptance.reached()[i - 1]);
}

TEST(AcceptanceTableNeedsData, the_published_lengths_read_to_their_end) {
  const auto data = measured_data();
  if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const AcceptanceTable lengths(*data / "serving" / "spec_decode_acceptance.csv");
  for (const int64_t drafts : {1, 2, 3, 4, 5, 6, 7, 8}) {
    for (const auto& [model, method] :
         {std::pair("deepseek-v4-pro", "mtp"), std::pair("minimax-m3", "eagle3"), std::pair("kimi-k3", "dspark")}) {
      const double tokens = lengths.of_model(model, method, drafts).expected_tokens(drafts);
      EXPECT_GT(tokens, 1.5);
      EXPECT_LE(tokens, static_cast<double>(drafts) + 1);
    }
  }
}

}  // namespace foretoken::acceptance_table_test
