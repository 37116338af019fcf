// The benchmark suite from the command line.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "run.h"

namespace foretoken {
namespace {

TEST(SuiteCommand, every_scenario_is_answered) {
  const Outcome outcome = run_foretoken("suite --json");
  ASSERT_EQ(outcome.status, 0) << outcome.out.substr(0, 400) << outcome.err;
  const Json document = parse_json(outcome.out, "suite");
  const JsonView view(document, "suite");
  EXPECT_EQ(view.at("answered").integer(), view.at("of").integer());
  EXPECT_GE(view.at("of").integer(), 40);
  for (const JsonView& scenario : view.at("scenarios").items()) {
    EXPECT_GT(scenario.at("answer").at("value").number(), 0) << scenario.at("id").string();
  }
}

TEST(SuiteCommand, answers_written_are_scored_as_our_own) {
  const std::string file = (std::filesystem::path(testing::TempDir()) / "suite_answers.csv").string();
  const Outcome own = run_foretoken("suite --only T2.1,T3 --mtap --csv " + file + " --json");
  ASSERT_EQ(own.status, 0) << own.err;
  const Outcome given = run_foretoken("suite --mtap --answers " + file + " --json");
  const Json first = parse_json(own.out, "own"), second = parse_json(given.out, "given");
  EXPECT_EQ(JsonView(first, "own").at("mtap").at("mape").number(),
            JsonView(second, "given").at("mtap").at("mape").number());
  EXPECT_EQ(JsonView(second, "given").at("mtap").at("answered").integer(), 4);
}

TEST(SuiteCommand, wrong_flags_say_what_is_missing) {
  EXPECT_EQ(run_foretoken("suite --only T99").status, 2);
  EXPECT_EQ(run_foretoken("suite --tool foretoken").status, 2);
  EXPECT_EQ(run_foretoken("suite --answers nothing.csv").status, 2);
}

}  // namespace
}  // namespace foretoken
