// Scenarios of the benchmark suite, their answers and scores.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "plan/suite/suite_answers.h"
#include "plan/suite/suite_card.h"
#include "plan/suite/suite_score.h"

namespace foretoken {

// Why a file of answers has none to a scenario.
inline constexpr std::string_view not_answered = "not answered";

struct SuiteRun {
  SuiteAnswer answer;
  std::string error;                  // why there is none
  double seconds = 0;                 // that it took; not part of the JSON, which is the same each time
  std::vector<SuiteRun> checks = {};  // of the card, in its order; none of a tool whose answers were read
};

// What the statuses of cards mean.
inline constexpr std::string_view suite_status_legend =
    "validated = the answer is backed by a measurement of the scenario or of a similar one, shown with its prediction "
    "and error; layers = its layers were compared with measurements, the whole was not; formula = compared only with "
    "formulas or known facts; not validated = compared with nothing.";

std::string suite_list_text(const std::vector<SuiteCard>& cards);
Json suite_list_json(const std::vector<SuiteCard>& cards);

// `runs` beside `cards`. What backs the answers, and which measurements were known before, is known of foretoken's own
// answers only.
enum class Answerer { foretoken, other };
std::string suite_text(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs, Answerer answerer);
Json suite_json(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs, Answerer answerer);

std::string suite_score_text(const SuiteScore& score, const ToolFacts& facts);
Json suite_score_json(const SuiteScore& score, const ToolFacts& facts);

// A tool of the leaderboard.
struct RankedTool {
  ToolFacts facts;
  SuiteScore score;
  size_t unanswered = 0;  // cases listed without a value
  CommonCases common;     // with foretoken: cases that both answered
};

// `tools`: best first.
std::string leaderboard_text(const std::vector<RankedTool>& tools);
Json leaderboard_json(const std::vector<RankedTool>& tools);
std::string leaderboard_html(const std::vector<RankedTool>& tools);

}  // namespace foretoken
