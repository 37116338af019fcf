#include "accelerator/sparse/nonzero_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/range.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::string_view market_banner = "%%MatrixMarket";
constexpr size_t max_matrix_bytes = size_t{1} << 30;

// Lines of a text one by one, with their numbers.
class MatrixLines {
 public:
  MatrixLines(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  bool next() {
    if (rest_.empty()) return false;
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }
  std::string_view line() const { return line_; }

  [[noreturn]] void fail(std::string_view value, std::string expected) const {
    throw InputError({.source = source_, .line = number_, .value = printable(value), .expected = std::move(expected)});
  }
  double number(std::string_view text) const {
    const auto value = parse_number(text);
    if (!value) fail(text, "a number");
    return *value;
  }
  int64_t whole(std::string_view text, Range<int64_t> allowed, std::string_view what) const {
    const auto value = parse_integer(text);
    if (!value || !allowed.holds(*value)) fail(text, fmt::format("{}: {}", what, range_text(allowed)));
    return *value;
  }

 private:
  std::string_view rest_, line_;
  const std::string& source_;
  int number_ = 0;
};

void add_place(NonzeroMatrix& matrix, int64_t row, int64_t column, const MatrixLines& lines) {
  if (std::ssize(matrix.places) >= max_matrix_nonzeros) {
    lines.fail("", fmt::format("at most {} nonzeros", max_matrix_nonzeros));
  }
  matrix.places.push_back({.row = static_cast<int32_t>(row), .column = static_cast<int32_t>(column)});
}

struct MarketBanner {
  bool coordinates = true;
  bool has_values = true;
  bool complex_values = false;
  bool mirrored = false;
};

MarketBanner read_market_banner(const MatrixLines& lines) {
  const std::string line = lower_case(lines.line());
  const auto words = split_words(line, " ");
  if (words.size() != 5 || words[1] != "matrix") {
    lines.fail(lines.line(), "%%MatrixMarket matrix, then coordinate or array, the kind of values and the symmetry");
  }
  if (words[2] != "coordinate" && words[2] != "array") lines.fail(words[2], "coordinate or array");
  if (words[3] != "real" && words[3] != "integer" && words[3] != "pattern" && words[3] != "complex") {
    lines.fail(words[3], "real, integer, pattern or complex");
  }
  if (words[4] != "general" && words[4] != "symmetric" && words[4] != "skew-symmetric") {
    lines.fail(words[4], "general, symmetric or skew-symmetric");
  }
  const MarketBanner banner{.coordinates = words[2] == "coordinate",
                            .has_values = words[3] != "pattern",
                            .complex_values = words[3] == "complex",
                            .mirrored = words[4] != "general"};
  if (!banner.coordinates && !banner.has_values) lines.fail(words[3], "values in an array");
  if (!banner.coordinates && words[4] == "skew-symmetric") lines.fail(words[4], "general or symmetric for an array");
  return banner;
}

bool next_market_line(MatrixLines& lines) {
  while (lines.next()) {
    if (!lines.line().starts_with('%') && lines.line().find_first_not_of(" \t") != std::string_view::npos) return true;
  }
  return false;
}

bool entry_is_nonzero(const MatrixLines& lines, const std::vector<std::string_view>& words, size_t first) {
  bool nonzero = false;
  for (size_t i = first; i < words.size(); ++i) nonzero = lines.number(words[i]) != 0 || nonzero;
  return nonzero;
}

}  // namespace

NonzeroMatrix parse_csv_matrix(std::string_view text, const std::string& source) {
  NonzeroMatrix matrix;
  MatrixLines lines(text, source);
  while (lines.next()) {
    if (lines.line().empty()) continue;
    const auto cells = split(lines.line(), ",");
    const auto columns = static_cast<int64_t>(cells.size());
    if (matrix.rows == 0) matrix.columns = columns;
    if (columns != matrix.columns) {
      lines.fail(fmt::format("{} values", columns), fmt::format("{} values, as in the first row", matrix.columns));
    }
    if (matrix.rows >= max_matrix_side || columns > max_matrix_side) {
      lines.fail("", fmt::format("at most {} rows and columns", max_matrix_side));
    }
    for (int64_t column = 0; column < columns; ++column) {
      if (lines.number(cells[column]) != 0) add_place(matrix, matrix.rows, column, lines);
    }
    ++matrix.rows;
  }
  if (matrix.rows == 0) lines.fail("", "a matrix: rows of numbers separated by commas");
  return matrix;
}

NonzeroMatrix parse_matrix_market(std::string_view text, const std::string& source) {
  MatrixLines lines(text, source);
  if (!lines.next()) lines.fail("", "a line that begins with %%MatrixMarket");
  const MarketBanner banner = read_market_banner(lines);
  if (!next_market_line(lines)) lines.fail("", "a line with the matrix's size");
  const auto size = split_words(lines.line(), " ");
  if (size.size() != (banner.coordinates ? 3U : 2U)) {
    lines.fail(lines.line(), banner.coordinates ? "rows, columns and entries" : "rows and columns");
  }
  NonzeroMatrix matrix{.rows = lines.whole(size[0], {.least = 1, .most = max_matrix_side}, "rows"),
                       .columns = lines.whole(size[1], {.least = 1, .most = max_matrix_side}, "columns")};
  if (banner.mirrored && matrix.rows != matrix.columns) lines.fail(lines.line(), "a square, as it is symmetric");
  if (!banner.coordinates && matrix.rows > max_matrix_nonzeros / matrix.columns) {
    lines.fail(lines.line(), fmt::format("at most {} values", max_matrix_nonzeros));
  }
  const int64_t stored = banner.coordinates ? lines.whole(size[2], {.least = 0, .most = max_matrix_nonzeros}, "entries")
                         : banner.mirrored  ? matrix.rows * (matrix.rows + 1) / 2
                                            : matrix.rows * matrix.columns;
  const size_t value_words = !banner.has_values ? 0 : banner.complex_values ? 2 : 1;
  int64_t array_row = 0, array_column = 0;  // an array is written column by column
  for (int64_t i = 0; i < stored; ++i) {
    if (!next_market_line(lines)) lines.fail(fmt::format("{} entries", i), fmt::format("{} entries", stored));
    const auto words = split_words(lines.line(), " ");
    const size_t place_words = banner.coordinates ? 2 : 0;
    if (words.size() != place_words + value_words) {
      lines.fail(lines.line(), fmt::format("{} numbers", place_words + value_words));
    }
    int64_t row = array_row, column = array_column;
    if (banner.coordinates) {
      row = lines.whole(words[0], {.least = 1, .most = matrix.rows}, "row") - 1;
      column = lines.whole(words[1], {.least = 1, .most = matrix.columns}, "column") - 1;
    } else if (++array_row == matrix.rows) {
      ++array_column;
      array_row = banner.mirrored ? array_column : 0;
    }
    if (banner.has_values && !entry_is_nonzero(lines, words, place_words)) continue;
    add_place(matrix, row, column, lines);
    if (banner.mirrored && row != column) add_place(matrix, column, row, lines);
  }
  if (next_market_line(lines)) lines.fail(lines.line(), fmt::format("{} entries, and no more", stored));

  const auto key = [](const NonzeroPlace& place) { return std::tie(place.row, place.column); };
  const auto less = [&](const NonzeroPlace& a, const NonzeroPlace& b) { return key(a) < key(b); };
  const auto equal = [&](const NonzeroPlace& a, const NonzeroPlace& b) { return key(a) == key(b); };
  std::sort(matrix.places.begin(), matrix.places.end(), less);
  matrix.places.erase(std::unique(matrix.places.begin(), matrix.places.end(), equal), matrix.places.end());
  return matrix;
}

NonzeroMatrix read_nonzero_matrix(const std::filesystem::path& path) {
  const std::string text = read_file(path, max_matrix_bytes);
  return text.starts_with(market_banner) ? parse_matrix_market(text, path.string())
                                         : parse_csv_matrix(text, path.string());
}

}  // namespace foretoken
