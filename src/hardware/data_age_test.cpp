#include "hardware/data_age.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/rent.h"

namespace foretoken::data_age_test {

const std::filesystem::path rents = FORETOKEN_SOURCE_DIR "/data/prices/rent.json";

TEST(DataAge, months_count_over_years_and_wrong_dates_are_none) {
  EXPECT_EQ(months_between("2026-03", "2026-11-17"), 8);
  EXPECT_EQ(months_between("2025-12-31", "2026-01-01"), 1);
  EXPECT_EQ(months_between("2026-11-17", "2026-11-01"), 0);
  for (const char* wrong : {"", "2026", "March 2026", "2026-13", "26-03", "2026-3", "2026-03-14-1"}) {
    EXPECT_FALSE(months_between(wrong, "2026-11-17")) << wrong;
  }
}

TEST(DataAge, facts_age_and_undated_ones_are_listed) {
  const std::vector<DatedFact> facts = {{"new", "2026-10"}, {"old", "2026-01-31"}, {"undated", ""}};
  std::vector<std::string> aged;
  for (const DatedFact& fact : aged_facts(facts, "2026-11-17", 6)) aged.push_back(fact.what);
  EXPECT_THAT(aged, testing::ElementsAre("old", "undated"));
}

TEST(DataAge, every_shipped_price_has_an_entry_and_every_date_a_price) {
  const std::vector<DatedFact> dates = rent_dates(rents);
  EXPECT_EQ(dates.size(), read_rents(rents).size());
  size_t dated = 0;
  for (const DatedFact& fact : dates) {
    dated += fact.date.empty() ? 0 : 1;
    EXPECT_TRUE(fact.date.empty() || months_between(fact.date, "2026-12")) << fact.what;
  }
  EXPECT_GT(dated, 10u);
}

TEST(DataAge, a_date_of_a_device_without_a_price_is_refused) {
  EXPECT_THROW(parse_rents(R"({"as_of": {"h100_sxm": "2026-03"}, "usd_per_hour": {}})", "rent.json"), InputError);
  for (const char* date : {"March", "2026-13", "2026-03-99", "2026-03-1x"}) {
    const std::string rents = fmt::format(
        R"({{"as_of": {{"h100_sxm": "{}"}}, "usd_per_hour": {{"h100_sxm": {{"value": 2, "source": "x"}}}}}})", date);
    EXPECT_THROW(parse_rents(rents, "rent.json"), InputError) << date;
  }
}

}  // namespace foretoken::data_age_test
