#include "plan/suite/suite_card.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/suite/suite_answers.h"

namespace foretoken::suite_card_test {

Json card_document(const std::string& id) {
  return Json::object({{"id", id},
                       {"name", "a scenario"},
                       {"group", "survey"},
                       {"model", "m"},
                       {"hardware", "h"},
                       {"strategy", "s"},
                       {"metric", "TTFT"},
                       {"unit", "ms"},
                       {"command", Json::array({Json("step")})},
                       {"value", "rows.1.seconds"},
                       {"scale", 1000.0},
                       {"validation", Json::object({{"status", "layers"}, {"against", "nothing"}})}});
}

SuiteCard card_of(const Json& document) {
  return read_suite_card(JsonView(document, "card.json"));
}

std::filesystem::path test_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(SuiteCard, an_answer_is_found_at_its_path_and_brought_to_the_cards_unit) {
  const SuiteCard card = card_of(card_document("I1.1"));
  const Json estimate = Json::object({{"value", 2.0}, {"low", 1.0}, {"high", 4.0}});
  const Json document = Json::object({{"rows", Json::array({Json(0.0), Json::object({{"seconds", estimate}})})}});
  const SuiteAnswer answer = suite_answer(card, document);
  EXPECT_EQ(answer.value, 2000);
  EXPECT_EQ(answer.low, 1000);
  EXPECT_EQ(answer.high, 4000);
}

TEST(SuiteCard, a_plain_number_has_no_interval_and_a_missing_one_is_refused) {
  SuiteCard card = card_of(card_document("I1.1"));
  card.value = "seconds";
  EXPECT_FALSE(suite_answer(card, Json::object({{"seconds", 2.0}})).low);
  EXPECT_THROW(suite_answer(card, Json::object({{"second", 2.0}})), InputError);
  card.value = "rows.7";
  EXPECT_THROW(suite_answer(card, Json::object({{"rows", Json::array()}})), InputError);
}

TEST(SuiteCard, ids_come_in_the_order_of_their_numbers_and_only_once) {
  const std::filesystem::path folder = test_folder("suite_order");
  int file = 0;
  for (const std::string id : {"T10.1", "T2.1", "T2.1b", "I3.2", "T2.2"}) {
    write_file(folder / (std::to_string(file++) + ".json"), card_document(id).dump());
  }
  std::vector<std::string> ids;
  for (const SuiteCard& card : read_suite(folder)) ids.push_back(card.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"I3.2", "T2.1", "T2.1b", "T2.2", "T10.1"}));
  write_file(folder / "again.json", card_document("T2.1").dump());
  EXPECT_THROW(read_suite(folder), InputError);
}

TEST(SuiteCard, misspelt_keys_and_statuses_are_refused) {
  Json misspelt = card_document("T1");
  misspelt.set("metrics", "TTFT");
  EXPECT_THROW(card_of(misspelt), InputError);
  Json unknown = card_document("T1");
  unknown.set("validation", Json::object({{"status", "sure"}, {"against", ""}}));
  EXPECT_THROW(card_of(unknown), InputError);
  Json level = card_document("T1");
  level.set("level", "kernels");
  EXPECT_THROW(card_of(level), InputError);
  level.set("level", "kernel");
  EXPECT_EQ(card_of(level).level, SuiteLevel::kernel);
}

}  // namespace foretoken::suite_card_test
