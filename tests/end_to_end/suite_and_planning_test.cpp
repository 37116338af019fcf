// The benchmark suite, comparisons and small planning commands from the command line.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <tuple>

#include "base/file.h"
#include "base/json.h"
#include "run.h"

namespace foretoken::suite_and_planning_test {

TEST(SuiteCommand, every_scenario_is_answered_and_every_validated_one_shows_its_error) {
  const Outcome outcome = run_foretoken("suite --json");
  ASSERT_EQ(outcome.status, 0) << outcome.out.substr(0, 400) << outcome.err;
  const Json document = parse_json(outcome.out, "suite");
  const JsonView view(document, "suite");
  EXPECT_EQ(view.at("answered").integer(), view.at("of").integer());
  EXPECT_GE(view.at("of").integer(), 40);
  int64_t validated = 0, shown = 0;
  std::map<std::tuple<std::string, std::string, double>, std::pair<double, bool>> measurements;  // error and seen
  for (const JsonView& scenario : view.at("scenarios").items()) {
    const std::string id = scenario.at("id").string();
    EXPECT_NE(scenario.at("stack").string(), "") << id;
    EXPECT_GT(scenario.at("answer").at("value").number(), 0) << id;
    int64_t of_scenario = 0;
    const auto expect_error = [&](const JsonView& of, double predicted, double measured, double error, bool seen) {
      EXPECT_NEAR(measured * (1 + error / 100), predicted, 1e-9 * predicted) << id;
      const auto known = measurements.try_emplace({of.at("command").string(), of.at("unit").string(), measured},
                                                  std::pair(std::abs(error), seen));
      EXPECT_EQ(known.first->second.second, seen) << id << ": cards disagree whether it was known before";
      ++of_scenario;
    };
    if (const auto measured = scenario.find("measured")) {
      expect_error(scenario, scenario.at("answer").at("value").number(), measured->at("value").number(),
                   scenario.at("error_percent").number(), measured->at("seen").boolean());
    }
    for (const JsonView& check : scenario.at("checks").items()) {
      EXPECT_NE(check.at("source").string(), "") << id;
      expect_error(check, check.at("predicted").at("value").number(), check.at("measured").number(),
                   check.at("error_percent").number(), check.at("seen").boolean());
    }
    EXPECT_EQ(scenario.at("status").string() == "validated", of_scenario > 0) << id;
    validated += of_scenario > 0 ? 1 : 0;
    shown += of_scenario;
  }
  double errors = 0;
  for (const auto& [measurement, error] : measurements) errors += error.first;
  const auto count = static_cast<int64_t>(measurements.size());
  EXPECT_GT(shown, count) << "some measurements are shown for two scenarios";
  EXPECT_GE(validated, 20);
  const JsonView summary = view.at("validation");
  EXPECT_EQ(summary.at("scenarios").integer(), validated);
  EXPECT_EQ(summary.at("measurements").integer(), count);
  EXPECT_NEAR(summary.at("mape").number(), errors / static_cast<double>(count), 1e-9);
  EXPECT_GT(summary.at("unseen").integer(), 0);
}

TEST(SuiteCommand, training_and_serving_scenarios_name_their_software_in_the_command) {
  const Outcome outcome = run_foretoken("suite --list --json");
  const Json document = parse_json(outcome.out, "suite");
  for (const JsonView& scenario : JsonView(document, "suite").at("scenarios").items()) {
    const std::string command = scenario.at("command").string();
    const bool trains = command.starts_with("foretoken train") || command.starts_with("foretoken rlhf");
    if (trains) {
      EXPECT_NE(command.find("--stack "), std::string::npos) << command;
    }
    if (command.starts_with("foretoken serve")) {
      EXPECT_NE(command.find("--engine "), std::string::npos) << command;
    }
  }
}

TEST(SuiteCommand, pages_that_cards_cite_exist) {
  int cited = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FORETOKEN_SOURCE_DIR "/data/suite/cards")) {
    const std::string card = read_file(entry.path(), 1 << 20);
    const std::regex page("docs/[a-z0-9_/]+\\.md");
    for (std::sregex_iterator at(card.begin(), card.end(), page); at != std::sregex_iterator(); ++at) {
      ++cited;
      EXPECT_TRUE(std::filesystem::exists(FORETOKEN_SOURCE_DIR "/" + at->str())) << entry.path() << ": " << at->str();
    }
  }
  EXPECT_GT(cited, 20);
}

TEST(SuiteCommand, the_text_shows_predictions_beside_measurements) {
  const Outcome outcome = run_foretoken("suite --only I1.1,N13");
  EXPECT_NE(outcome.out.find("Predictions beside measurements"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("not validated"), std::string::npos) << outcome.out;
}

TEST(SuiteCommand, answers_written_are_read_as_those_of_another_tool) {
  const std::string file = (std::filesystem::path(testing::TempDir()) / "suite_answers.csv").string();
  const Outcome own = run_foretoken("suite --only N20,N21,T2.1,T3.1 --csv " + file + " --json");
  ASSERT_EQ(own.status, 0) << own.err;
  const Outcome given = run_foretoken("suite --mtap --answers " + file + " --json");
  const Json first = parse_json(own.out, "own"), second = parse_json(given.out, "given");
  const JsonView mtap = JsonView(second, "given").at("mtap");
  EXPECT_EQ(mtap.at("answered").integer(), 4);
  const JsonView own_errors = JsonView(first, "own").at("validation");
  EXPECT_EQ(own_errors.at("measurements").integer(), 3) << "the check of T2.1 is the scenario of N20";
  EXPECT_EQ(mtap.at("measured_cases").integer(), own_errors.at("measurements").integer());
  EXPECT_NEAR(mtap.at("mape").number(), own_errors.at("mape").number(), 1e-6);
}

TEST(SuiteCommand, the_leaderboard_scores_shipped_answers_of_five_tools_and_more) {
  const std::string page = (std::filesystem::path(testing::TempDir()) / "leaderboard.html").string();
  const Outcome outcome = run_foretoken("suite --leaderboard --json --html " + page);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "leaderboard");
  int scored = 0, compared = 0;
  double last = 100;
  for (const JsonView& tool : JsonView(document, "leaderboard").at("tools").items()) {
    EXPECT_LE(tool.at("total").number(), last) << tool.at("tool").string();
    last = tool.at("total").number();
    if (tool.at("tool").string() == "foretoken") {
      EXPECT_EQ(tool.at("assessed_weight").number(), 100);
      continue;
    }
    EXPECT_EQ(tool.at("ranked").boolean(), tool.at("measured_cases").integer() > 0);
    scored += tool.at("ranked").boolean() ? 1 : 0;
    const auto same = tool.find("same_cases");
    if (!same) continue;
    ++compared;
    EXPECT_NE(same->at("known_before").string(), "") << tool.at("tool").string();
    if (same->at("cases").integer() == tool.at("measured_cases").integer()) {
      EXPECT_NEAR(same->at("mape").number(), tool.at("case_mape").number(), 1e-6) << "one definition of error";
    }
  }
  EXPECT_GE(scored, 5);
  EXPECT_GE(compared, 5);
  const std::string html = read_file(page, 1 << 20);
  EXPECT_NE(html.find("NeuSight"), std::string::npos);
  EXPECT_NE(html.find("generalization"), std::string::npos);
  EXPECT_NE(html.find("Not ranked"), std::string::npos);
}

TEST(SuiteCommand, shipped_answers_are_scored_by_name) {
  const Outcome outcome = run_foretoken("suite --mtap --answers calculon --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "calculon");
  const JsonView mtap = JsonView(document, "calculon").at("mtap");
  EXPECT_EQ(mtap.at("tool").string(), "Calculon");
  EXPECT_NEAR(mtap.at("mape").number(), 3.65, 0.05);  // as its authors publish it
  EXPECT_EQ(run_foretoken("suite --mtap --answers calculonn").status, 2);
  const Outcome text = run_foretoken("suite --mtap --answers calculon");
  EXPECT_TRUE(text.out.starts_with("Calculon, scored from 0 to 100")) << text.out.substr(0, 200);
  EXPECT_LT(std::count(text.out.begin(), text.out.end(), '\n'), 40);
}

TEST(SuiteCommand, wrong_flags_say_what_is_missing) {
  EXPECT_EQ(run_foretoken("suite --only T99").status, 2);
  EXPECT_EQ(run_foretoken("suite --tool foretoken").status, 2);
  EXPECT_EQ(run_foretoken("suite --answers nothing.csv").status, 2);
  EXPECT_EQ(run_foretoken("suite --mtap --answers nothing.csv").status, 2);
  EXPECT_EQ(run_foretoken("suite --html page.html").status, 2);
  EXPECT_EQ(run_foretoken("suite --leaderboard --only T1").status, 2);
}

TEST(CompareCommand, the_second_takes_the_flags_of_the_first_but_for_those_given) {
  const Outcome outcome = run_foretoken(
      "compare --first 'step --model Llama-3.1-8B --device h100_sxm --batch 8' --second '--device a100_sxm' --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "comparison");
  const JsonView view(document, "comparison");
  EXPECT_EQ(view.at("second").string(), "foretoken step --model Llama-3.1-8B --batch 8 --device a100_sxm");
  const JsonView step = view.at("headlines").items().at(0);
  EXPECT_NEAR(view.at("parts_difference_seconds").number(), step.at("second").number() - step.at("first").number(),
              1e-3 * step.at("second").number());
  const Outcome joined = run_foretoken(
      "compare --first 'step --model=Llama-3.1-8B --device=h100_sxm --batch=8' --second '--device a100_sxm'");
  EXPECT_EQ(joined.status, 0);
  EXPECT_NE(joined.out.find("--device  h100_sxm  a100_sxm"), std::string::npos);
  EXPECT_EQ(run_foretoken("compare --first 'devices' --second 'devices'").status, 2);
  EXPECT_EQ(run_foretoken("compare --first \"step '\" --second step").status, 2);
}

TEST(PlanHardwareCommand, more_bandwidth_makes_a_decode_faster) {
  const Outcome outcome = run_foretoken(
      "plan hardware --model Llama-3.1-8B --device h100_sxm --batch 8 --context-len 1024 --change "
      "memory-bandwidth=+50% --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "plan");
  const JsonView view(document, "plan");
  EXPECT_LT(view.at("changed").at("seconds_ratio").number(), 0.9);
  EXPECT_EQ(view.at("sensitivities").items().at(0).at("number").string(), "memory-bandwidth");
  EXPECT_EQ(run_foretoken("plan hardware --model Llama-3.1-8B --device h100_sxm --change bandwith=+50%").status, 2);
}

TEST(PimCommand, what_is_added_to_a_kernel_takes_as_long_as_what_was_there_beyond_its_setup) {
  const auto kernel_seconds = [](const std::string& size) {
    const Outcome outcome = run_foretoken("pim --program VA --dpus 64 --json --size " + size);
    const Json document = parse_json(outcome.out, "pim");
    return JsonView(document, "pim").at("kernel_seconds").at("value").number();
  };
  const double first = kernel_seconds("16777216"), second = kernel_seconds("33554432"),
               third = kernel_seconds("50331648");
  EXPECT_GT(second, first);
  EXPECT_NEAR(third - second, second - first, 1e-6 * third);
  EXPECT_EQ(run_foretoken("pim --program VA --size 1000 --dpus 1000000").status, 2);
}

}  // namespace foretoken::suite_and_planning_test
