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
                       {"stack", "an engine"},
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

Json check_document() {
  return Json::object({{"name", "half of it"},
                       {"command", Json::array({Json("step")})},
                       {"value", "seconds"},
                       {"scale", 1000.0},
                       {"measured", 8.0},
                       {"unit", "ms"},
                       {"source", "a paper, table 1"}});
}

Json validated_document() {
  Json document = card_document("T1");
  document.set("validation", Json::object({{"status", "validated"}, {"against", "a paper"}}));
  return document;
}

TEST(SuiteCard, a_validated_card_without_a_measurement_is_refused_at_its_status) {
  try {
    card_of(validated_document());
    FAIL() << "read";
  } catch (const InputError& error) {
    EXPECT_NE(error.sentence().find("validation.status"), std::string::npos) << error.sentence();
  }
  Json checked = validated_document();
  checked.set("checks", Json::array({check_document()}));
  EXPECT_EQ(card_of(checked).checks.at(0).measured, 8);
  Json measured = validated_document();
  measured.set("measured", Json::object({{"value", 3.0}, {"source", "a paper"}}));
  EXPECT_EQ(card_of(measured).measured.value().value, 3);
  measured.set("measured", Json::object({{"value", 3.0}, {"source", ""}}));
  EXPECT_THROW(card_of(measured), InputError);
}

TEST(SuiteCard, checks_need_a_command_a_measurement_and_a_source) {
  for (const std::string key : {"name", "command", "measured", "source"}) {
    Json check = check_document();
    check.set(key, key == "command" ? Json::array() : key == "measured" ? Json(0.0) : Json(""));
    Json document = card_document("T1");
    document.set("checks", Json::array({check}));
    EXPECT_THROW(card_of(document), InputError) << key;
  }
}

TEST(SuiteCard, two_checks_of_one_name_are_refused_at_the_second) {
  Json document = card_document("T1");
  document.set("checks", Json::array({check_document(), check_document()}));
  try {
    card_of(document);
    FAIL() << "read";
  } catch (const InputError& error) {
    EXPECT_NE(error.sentence().find("checks[1].name"), std::string::npos) << error.sentence();
  }
  Json other = check_document();
  other.set("name", "a third of it");
  document.set("checks", Json::array({check_document(), other}));
  EXPECT_EQ(card_of(document).checks.size(), 2U);
}

TEST(SuiteCard, a_measurement_on_two_cards_is_one) {
  const SuiteCheck shared = {.name = "half", .command = {"step"}, .value = "seconds", .measured = 8};
  SuiteCheck other_value = shared, other_command = shared, other_measured = shared;
  other_value.value = "rows.0.seconds";
  other_command.command = {"train"};
  other_measured.measured = 9;
  const std::vector<SuiteCard> cards = {
      {.id = "T1", .checks = {shared}},
      {.id = "T2", .command = {"step"}, .value = "seconds", .measured = MeasuredFigure{.value = 8}},
      {.id = "T3", .checks = {other_value, shared, other_command, other_measured}}};
  std::vector<std::pair<size_t, std::optional<size_t>>> places;
  for (const auto& [card, check] : distinct_measurements(cards)) places.emplace_back(card, check);
  EXPECT_EQ(places, (std::vector<std::pair<size_t, std::optional<size_t>>>{{1, std::nullopt}, {2, 0}, {2, 2}, {2, 3}}));
}

TEST(SuiteCard, a_measurement_of_the_card_itself_is_withheld_unless_it_was_seen) {
  SuiteCard card = card_of(card_document("T1"));
  card.value = "seconds";
  const Json document = Json::object({{"seconds", 2.0}});
  EXPECT_TRUE(suite_answer(card, document).withheld.empty()) << "nothing was measured";
  card.measured = {.value = 3, .source = "a paper"};
  EXPECT_EQ(suite_answer(card, document).withheld, std::vector{Withheld::workload});
  card.measured->seen = true;
  EXPECT_TRUE(suite_answer(card, document).withheld.empty());
}

TEST(SuiteCard, a_check_is_a_case_with_its_measurement_and_withheld_unless_it_was_seen) {
  Json document = validated_document();
  document.set("checks", Json::array({check_document()}));
  SuiteCard card = card_of(document);
  const SuiteAnswer answer = suite_check_answer(card, 0, Json::object({{"seconds", 0.01}}));
  EXPECT_EQ(answer.id, "T1/half of it");
  EXPECT_DOUBLE_EQ(suite_error(answer.value, answer.measured.value()), 25);
  EXPECT_EQ(answer.withheld, std::vector{Withheld::workload});
  card.checks[0].seen = true;
  EXPECT_TRUE(suite_check_answer(card, 0, Json::object({{"seconds", 0.01}})).withheld.empty());
}

}  // namespace foretoken::suite_card_test
