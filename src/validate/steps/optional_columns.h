// Cells of columns that a table may lack.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/csv.h"

namespace foretoken {

// Of the current row; empty where there is no such column.
inline std::string_view optional_text(const CsvReader& csv, std::string_view column) {
  const auto found = csv.find_column(column);
  return found ? csv.cell(*found) : std::string_view();
}

// `fallback` where there is no such column or the cell is empty.
inline int64_t optional_count(const CsvReader& csv, std::string_view column, int64_t fallback) {
  const auto found = csv.find_column(column);
  if (!found || csv.cell(*found).empty()) return fallback;
  return csv.integer(*found, {0, 1'000'000'000});
}

}  // namespace foretoken
