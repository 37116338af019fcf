// A scenario of the benchmark suite: a question about a model on some hardware, and the command that answers it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

// What stands behind an answer.
//   validated  rows like this one were measured, and predictions of such rows are scored in docs/accuracy.md
//   layers     the layers it is made of are validated, the whole is not
//   formula    by rule or formula; nobody's measurement was at hand
enum class SuiteStatus { validated, layers, formula };
std::string_view suite_status_name(SuiteStatus status);

// What a figure is about: one kernel or collective, one step of a model, or a whole run.
enum class SuiteLevel { kernel, model, system };
std::string_view suite_level_name(SuiteLevel level);
std::optional<SuiteLevel> suite_level_of(std::string_view name);

struct MeasuredFigure {
  double value = 0;
  std::string source;
};

// A place in a row of scenarios that differ by size alone.
struct ScalingPlace {
  std::string family;
  double size = 1;
};

struct SuiteCard {
  std::string id, name;
  std::string group;  // "survey" or "newer"
  SuiteLevel level = SuiteLevel::system;
  std::string model, hardware, strategy, metric, unit;
  std::vector<std::string> command;  // arguments of foretoken
  std::string value;                 // where the answer is in its JSON: intervals.mean_ttft_ms
  double scale = 1;                  // from its unit to ours
  SuiteStatus status = SuiteStatus::formula;
  std::string against;                     // what such answers were compared with
  std::optional<MeasuredFigure> measured;  // of this very scenario, published
  std::optional<ScalingPlace> scaling;
};

// InputError with file and path for a card that is not one.
SuiteCard read_suite_card(const JsonView& document);
// All cards of a folder, in the order of their ids: T1.1, T1.2, T10.1. InputError for two of one id.
std::vector<SuiteCard> read_suite(const std::filesystem::path& folder);

}  // namespace foretoken
