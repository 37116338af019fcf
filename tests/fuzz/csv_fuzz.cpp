// Any bytes are either a table that writes and reads back without loss, or an InputError.
#include <string>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "fuzz.h"

namespace {

using namespace foretoken;
using Table = std::vector<std::vector<std::string>>;

constexpr CsvLimits limits{.max_row_bytes = 1 << 12, .max_columns = 64};

Table read(std::string text, bool numbers) {
  CsvReader reader = CsvReader::from_text(std::move(text), "input", limits);
  Table table = {reader.columns()};
  while (reader.next()) {
    std::vector<std::string>& row = table.emplace_back();
    for (size_t column = 0; column < reader.columns().size(); ++column) {
      row.emplace_back(reader.cell(column));
      if (!numbers) continue;
      try {
        reader.integer(column, {-5, 5});
      } catch (const InputError&) {
      }
      try {
        reader.number(column);
      } catch (const InputError&) {
      }
    }
    promise(reader.row() + 1 == table.size() && reader.line() > 0, "rows and lines are counted");
  }
  return table;
}

std::string write(const Table& table) {
  std::string text;
  for (const std::vector<std::string>& row : table) {
    for (size_t column = 0; column < row.size(); ++column) text += (column > 0 ? "," : "") + csv_cell(row[column]);
    if (row.size() == 1 && row[0].empty()) text += "\"\"";  // an empty line would be no row
    text += '\n';
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Table table = read(std::string(as_text(data, size)), true);
    promise(read(write(table), false) == table, "a table is the same after writing and reading it");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
