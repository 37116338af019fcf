// Every layer's errors in one report, beside those of the last run. A history is a file of JSON Lines, a run on each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

// The overall errors of one check: a `validate` command with its data.
struct CheckedErrors {
  std::string name;
  size_t rows = 0;
  double mape = 0, median_ape = 0, p90_ape = 0, bias = 0;  // percent
  std::optional<double> coverage90;
};

struct ValidationCheck {
  CheckedErrors errors;
  std::string command;  // that repeats it; empty where its measurements are not there
  std::string skipped;  // why it was not run, or could not
  double seconds = 0;   // on the wall; not part of JSON, which is the same each time
};

struct PastRun {
  std::string date, version;
  std::vector<CheckedErrors> checks;
};

struct ValidationRun {
  std::string date, version;
  std::vector<ValidationCheck> checks;
  std::vector<PastRun> history;  // oldest first
};

// The overall errors in the document of a `validate` command. InputError where it has none.
CheckedErrors checked_errors(const std::string& name, const Json& document);

// Nothing for a file that is not there yet. InputError with line and path.
std::vector<PastRun> read_validation_history(const std::filesystem::path& path);
std::vector<PastRun> parse_validation_history(std::string text, const std::string& source);
std::string validation_history_line(const ValidationRun& run);  // to be appended

std::string validation_run_text(const ValidationRun& run);
Json validation_run_json(const ValidationRun& run);
std::string validation_run_html(const ValidationRun& run);

}  // namespace foretoken
