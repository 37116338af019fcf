// How good a prediction tool is, by its answers to the suite and by what is known about it: five dimensions, each a
// number from 0 to 100 that a formula makes of figures shown beside it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/statistics.h"
#include "plan/suite/suite_card.h"

namespace foretoken {

// What answers alone do not say; errors are in percent, measured by the tool's authors or users.
struct ToolFacts {
  std::string name;
  std::string source;  // of these facts
  // Composition: the error of kernels, and of whole models or systems made of them.
  std::optional<double> kernel_mape, model_mape;
  // Generalisation: on hardware whose measurements the tool has, and on hardware it has never seen.
  std::optional<double> seen_mape, unseen_mape;
  // Deployment.
  std::optional<double> install_commands;
  std::optional<double> seconds_per_scenario;
  bool needs_gpu = true, needs_network = true;
  // Extensibility: what has to be written for a new device, model or technique.
  bool device_by_file = false, model_by_file = false, technique_by_flag = false;
};

// InputError with file and path.
ToolFacts read_tool_facts(const JsonView& document);

struct DimensionScore {
  std::string name;
  std::optional<double> score;  // 0 to 100; nothing where the figures that it needs are not known
  std::string why;              // the figures
};

struct SuiteScore {
  size_t scenarios = 0, answered = 0;
  size_t survey_scenarios = 0, survey_answered = 0;
  ErrorSummary errors;                  // on scenarios with a published measurement
  std::optional<double> scaling_error;  // percent: how far ratios within a row of sizes are off
  std::vector<DimensionScore> dimensions;
};

SuiteScore score_answers(std::span<const SuiteCard> cards, std::span<const SuiteAnswer> answers,
                         const ToolFacts& facts);

}  // namespace foretoken
