#include "report/accuracy/published_accuracy.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::published_accuracy_test {

TEST(PublishedAccuracy, the_system_of_a_group_is_its_last_part) {
  const std::vector<PublishedGroup> groups = parse_published_accuracy(
      R"({"note": "n", "sets": [
          {"layer": "collectives", "source": "s", "groups": [
            {"group": "all_reduce, 8 ranks, h100_dgx", "count": 3, "mape": 7.5, "seen": "unseen",
             "within_interval": 90}]},
          {"layer": "attention", "source": "s", "groups": [
            {"group": "attention_decode", "count": 4, "mape": 2, "seen": "fitted"}]}]})",
      "file");
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].system(), "h100_dgx");
  EXPECT_EQ(groups[0].in_interval, 90);
  EXPECT_EQ(groups[1].system(), "attention_decode");
  EXPECT_EQ(groups[1].layer, "kernels");
  EXPECT_EQ(groups[1].in_interval, std::nullopt);
}

TEST(PublishedAccuracy, what_is_missing_or_impossible_is_named_with_its_place) {
  const auto complaint = [](const std::string& group) {
    try {
      parse_published_accuracy(
          R"({"sets": [{"layer": "l", "source": "s", "groups": [{"group": "g", "seen": "u", )" + group + "}]}]}",
          "file");
    } catch (const InputError& error) {
      return error.problem().path;
    }
    return std::string("nothing");
  };
  EXPECT_EQ(complaint(R"("count": 0, "mape": 1)"), "sets[0].groups[0].count");
  EXPECT_EQ(complaint(R"("count": 1, "mape": -1)"), "sets[0].groups[0].mape");
  EXPECT_NE(complaint(R"("count": 1)"), "nothing");
  EXPECT_EQ(complaint(R"("count": 1, "mape": 1)"), "nothing");
}

}  // namespace foretoken::published_accuracy_test
