// A scenario of the benchmark suite: a question about a model on some hardware, and the command that answers it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

// What stands behind an answer.
//   validated      a measurement of the card's scenario, or of one like it (`checks`), stands on the card
//   layers         the layers it is made of are validated, the whole is not
//   formula        by rule or formula, compared with other formulas or known facts only
//   not validated  nothing
enum class SuiteStatus { validated, layers, formula, not_validated };
std::string_view suite_status_name(SuiteStatus status);      // as in files
std::string_view suite_status_sentence(SuiteStatus status);  // for people

// What a figure is about: one kernel or collective, one step of a model, or a whole run.
enum class SuiteLevel { kernel, model, system };
std::string_view suite_level_name(SuiteLevel level);
std::optional<SuiteLevel> suite_level_of(std::string_view name);

struct MeasuredFigure {
  double value = 0;
  std::string source;
  bool seen = false;  // known when constants were fitted or chosen
};

// A measurement of a configuration similar to the card's, and the command that predicts it.
struct SuiteCheck {
  std::string name;                  // the configuration in a few words
  std::vector<std::string> command;  // arguments of foretoken
  std::string value;                 // where the prediction is in its JSON
  double scale = 1;                  // from its unit to that of the measurement
  double measured = 0;
  std::string unit, source;
  bool seen = false;  // known when constants were fitted or chosen
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
  std::string stack;                 // software that the answer is about
  std::vector<std::string> command;  // arguments of foretoken
  std::string value;                 // where the answer is in its JSON: intervals.mean_ttft_ms
  double scale = 1;                  // from its unit to ours
  SuiteStatus status = SuiteStatus::formula;
  std::string against;                     // what such answers were compared with
  std::optional<MeasuredFigure> measured;  // of this very scenario, published
  std::vector<SuiteCheck> checks;
  std::string note;  // what a reader must know: where the survey's text and its table disagree
  std::optional<ScalingPlace> scaling;
};

// InputError with file and path for a card that is not one, is validated without a measurement, or has two checks of
// one name.
SuiteCard read_suite_card(const JsonView& document);
// All cards of a folder, in the order of their ids: T1.1, T1.2, T10.1. InputError for two of one id.
std::vector<SuiteCard> read_suite(const std::filesystem::path& folder);

// A measurement on a card: of its own scenario, or of one of its checks.
struct SuiteMeasurement {
  size_t card = 0;              // place in the list of cards
  std::optional<size_t> check;  // place in the card's checks; none = of the scenario itself
};
// Each measurement once. Two are the same if their command, value and measured number are equal, as where a card's
// check is the scenario of another card. Those of scenarios come first.
std::vector<SuiteMeasurement> distinct_measurements(std::span<const SuiteCard> cards);

}  // namespace foretoken
