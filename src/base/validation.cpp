#include "base/validation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

std::optional<double> mape_of_long_rows(const std::vector<PredictedRow>& rows, double long_from) {
  double sum = 0, count = 0;
  for (const PredictedRow& row : rows) {
    if (row.measured < long_from) continue;
    sum += std::abs(row.predicted - row.measured) / row.measured;
    count += 1;
  }
  if (count == 0) return std::nullopt;
  return 100 * sum / count;
}

double per_1000_rows(double seconds, size_t rows) {
  return rows > 0 ? 1000 * seconds / static_cast<double>(rows) : 0;
}

}  // namespace

void check_grouping(const std::string& group_by, const std::vector<std::string>& known, std::string_view rows) {
  if (group_by.empty() || std::find(known.begin(), known.end(), group_by) != known.end()) return;
  throw InputError({.field = "group_by",
                    .value = printable(group_by),
                    .expected = fmt::format("one of {} (for {})", fmt::join(known, ", "), rows)});
}

void ValidationTally::add(std::string_view group, const PredictedRow& row, double seconds_spent) {
  auto found = groups_.find(group);
  if (found == groups_.end()) found = groups_.try_emplace(std::string(group)).first;
  found->second.rows.push_back(row);
  found->second.seconds += seconds_spent;
}

void ValidationTally::write(Validation& validation) const {
  std::vector<PredictedRow> all;
  double seconds = 0;
  validation.groups.clear();
  for (const auto& [name, group] : groups_) {
    all.insert(all.end(), group.rows.begin(), group.rows.end());
    seconds += group.seconds;
    validation.groups.push_back({.name = name,
                                 .errors = summarize_errors(group.rows),
                                 .mape_20us = mape_of_long_rows(group.rows, long_from_),
                                 .seconds_per_1000_rows = per_1000_rows(group.seconds, group.rows.size())});
  }
  validation.overall = summarize_errors(all);
  validation.mape_20us = mape_of_long_rows(all, long_from_);
  validation.seconds_per_1000_rows = per_1000_rows(seconds, all.size());
}

}  // namespace foretoken
