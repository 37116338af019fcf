// How far predictions lie from measurements, by group: what every layer's `validate` hands to the report.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/statistics.h"

namespace foretoken {

struct SkippedRows {
  std::string file;
  size_t row = 0;  // 0 = the whole file
  std::string why;
};

struct ValidationGroup {
  std::string name;
  ErrorSummary errors;
  std::optional<double> mape_20us;   // over rows of long_row_us and more
  double seconds_per_1000_rows = 0;  // reading and predicting, on one core
};

struct Validation {
  ErrorSummary overall;
  std::optional<double> mape_20us;
  double seconds_per_1000_rows = 0;
  bool has_intervals = true;            // without, coverage means nothing and is left out
  std::vector<ValidationGroup> groups;  // by name
  std::vector<SkippedRows> skipped;     // in the order of files and rows
  std::vector<std::string> notes;       // what was found and left out
};

// InputError where a grouping that was asked for is none of these. `rows` says of what: "collectives between nodes".
void check_grouping(const std::string& group_by, const std::vector<std::string>& known, std::string_view rows);

// Launch overhead dominates rows shorter than this, so the rest is looked at on its own.
inline constexpr double long_row_us = 20;

// Collects rows by group.
class ValidationTally {
 public:
  // `long_from`: long_row_us in the unit of the rows; 0 = every row is long.
  explicit ValidationTally(double long_from) : long_from_(long_from) {}

  void add(std::string_view group, const PredictedRow& row, double seconds_spent);
  // Fills the errors and efforts of `validation`; skipped rows and notes stay as they are.
  void write(Validation& validation) const;

 private:
  struct Gathered {
    std::vector<PredictedRow> rows;
    double seconds = 0;
  };
  double long_from_;
  std::map<std::string, Gathered, std::less<>> groups_;
};

}  // namespace foretoken
