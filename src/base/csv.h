// CSV row by row, plain or gzip: header names, quoted cells, positions in every complaint, bounded memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"

namespace foretoken {

struct CsvLimits {
  size_t max_bytes = size_t{8} << 30;  // after decompression; rows are streamed, so this bounds time, not memory
  size_t max_row_bytes = size_t{1} << 20;
  size_t max_columns = 1024;
};

class CsvReader {
 public:
  explicit CsvReader(const std::filesystem::path& path, CsvLimits limits = {});
  static CsvReader from_text(std::string text, std::string source, CsvLimits limits = {});
  ~CsvReader();
  CsvReader(CsvReader&&) noexcept;
  CsvReader& operator=(CsvReader&&) noexcept;

  const std::string& source() const;
  const std::vector<std::string>& columns() const;
  std::optional<size_t> find_column(std::string_view name) const;
  size_t column(std::string_view name) const;  // InputError when absent; suggests the nearest

  // Moves to the next row; false at the end. A row with too few or too many cells is an InputError. Lines without any
  // character are skipped.
  bool next();

  size_t row() const;                          // 1-based number of the current data row
  int line() const;                            // line on which it starts
  std::string_view cell(size_t column) const;  // valid until next()

  double number(size_t column, Range<double> allowed = {}) const;
  int64_t integer(size_t column, Range<int64_t> allowed = {}) const;

  [[noreturn]] void fail(size_t column, std::string expected, std::string suggestion = "") const;

 private:
  struct State;
  explicit CsvReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One cell as CSV text: quoted when it must be.
std::string csv_cell(std::string_view text);

}  // namespace foretoken
