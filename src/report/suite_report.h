// Scenarios of the benchmark suite, their answers and scores.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/suite/suite_card.h"
#include "plan/suite/suite_score.h"

namespace foretoken {

struct SuiteRun {
  SuiteAnswer answer;
  std::string error;   // why there is none
  double seconds = 0;  // that it took; not part of the JSON, which is the same each time
};

std::string suite_list_text(const std::vector<SuiteCard>& cards);
Json suite_list_json(const std::vector<SuiteCard>& cards);

// `runs` beside `cards`.
std::string suite_text(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs);
Json suite_json(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs);

std::string suite_score_text(const SuiteScore& score, const ToolFacts& facts);
Json suite_score_json(const SuiteScore& score, const ToolFacts& facts);

}  // namespace foretoken
