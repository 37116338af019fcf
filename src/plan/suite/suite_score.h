// How good a prediction tool is (MTAP): five dimensions from 0 to 100, computed from its answers and from facts about
// the program, and their weighted total. docs/suite.md has the formulas.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/statistics.h"
#include "plan/suite/suite_answers.h"
#include "plan/suite/suite_card.h"

namespace foretoken {

// A figure that the tool's authors published without the rows behind it: shown, never scored.
struct ToolClaim {
  std::string figure, source;
};

// What answers alone do not say.
struct ToolFacts {
  std::string name;
  std::string source;  // of these facts
  // Deployment.
  std::optional<double> install_commands;
  std::optional<double> seconds_to_first_prediction;  // from a fresh checkout
  std::optional<double> seconds_per_scenario;
  std::optional<bool> needs_gpu, needs_network;
  // Extensibility: what is added by a file or a flag alone.
  std::optional<bool> device_by_file, model_by_file, technique_by_flag;
  std::vector<ToolClaim> claims;
  std::string seen;  // what the tool, or foretoken, had seen of the cases that both answer; empty = nothing
};

// InputError with file and path.
ToolFacts read_tool_facts(const JsonView& document);

struct DimensionScore {
  std::string name;
  double weight = 0;            // share of the total, in percent
  std::optional<double> score;  // 0 to 100; nothing where no figure supports one
  std::string why;              // the figures
};

struct LevelErrors {
  ErrorSummary errors;
  double maximum = 0;  // percent
};

// Where the error of composed cases comes from: their parts, or how the parts were put together.
struct GapAttribution {
  size_t cases = 0;
  double total_error = 0;       // mean |error| of the cases, in percent of what was measured
  double from_parts = 0;        // mean |sum of the errors of the parts|
  double from_composition = 0;  // mean |the rest|
};

struct WithheldErrors {
  ErrorSummary errors;
  std::optional<double> seen_mape;  // of answers of the same levels with nothing withheld
};

struct SuiteScore {
  size_t scenarios = 0, answered = 0;  // cards
  size_t survey_scenarios = 0, survey_answered = 0;
  size_t measured_cases = 0;  // cards and other cases with a measurement
  std::map<SuiteLevel, LevelErrors> levels;
  std::optional<double> mape;                   // mean over the levels
  std::optional<double> case_mape;              // mean over the cases
  std::optional<double> maximum_error;          // of any case
  std::optional<double> rank;                   // mean rank correlation within groups
  std::optional<double> coverage90;             // of answers with intervals
  std::optional<double> scaling_error;          // percent: how far ratios within rows of sizes are off
  std::optional<double> model_gap, system_gap;  // percent: what composing kernels, and then models, adds to the error
  std::optional<GapAttribution> attribution;
  std::map<Withheld, WithheldErrors> withheld;
  std::vector<DimensionScore> dimensions;
  double total = 0;            // 0 to 100; a dimension without a score counts nothing
  double assessed_weight = 0;  // percent of the weights that have a score
};

SuiteScore score_answers(std::span<const SuiteCard> cards, std::span<const SuiteAnswer> answers,
                         const ToolFacts& facts);

// Both tools on the cases that both answered and somebody measured.
struct CommonCases {
  size_t cases = 0;
  double mape = 0, other_mape = 0;
};
CommonCases common_cases(std::span<const SuiteCard> cards, std::span<const SuiteAnswer> answers,
                         std::span<const SuiteAnswer> others);

}  // namespace foretoken
