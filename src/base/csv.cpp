#include "base/csv.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t largest_buffer = size_t{1} << 18;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

}  // namespace

struct CsvReader::State {
  std::string source;
  CsvLimits limits;
  std::function<size_t(std::span<char>)> read_more;

  std::string buffer;
  size_t at = 0, filled = 0;

  std::vector<std::string> columns;
  std::string text;               // the cells of the current row, one after the other
  std::vector<size_t> cell_ends;  // cell i is text[cell_ends[i-1], cell_ends[i])
  bool any_quotes = false;        // in the current row: "" alone is an empty cell, an empty line is nothing
  size_t row = 0;
  int line = 0;  // where the current row starts
  int next_line = 1;

  [[noreturn]] void fail_row(const std::string& value, const std::string& expected) const {
    throw InputError({.source = source,
                      .line = line,
                      .path = row == 0 ? "header" : fmt::format("row {}", row),
                      .value = value,
                      .expected = expected});
  }

  // The next byte, or -1 at the end.
  int peek() {
    if (at == filled) {
      filled = read_more(buffer);
      at = 0;
      if (filled == 0) return -1;
    }
    return static_cast<unsigned char>(buffer[at]);
  }

  void end_cell() {
    if (cell_ends.size() >= limits.max_columns) fail_row("", fmt::format("at most {} columns", limits.max_columns));
    cell_ends.push_back(text.size());
  }

  void add(char c) {
    if (c == '\0') fail_row("a NUL byte", "text");
    if (text.size() >= limits.max_row_bytes)
      fail_row("", fmt::format("at most {} bytes in a row", limits.max_row_bytes));
    text += c;
  }

  void end_line() {
    if (next_line < std::numeric_limits<int>::max()) ++next_line;
  }

  // A mark that some spreadsheets put before the first cell, which may be a quoted one.
  void skip_byte_order_mark() {
    if (peek() < 0) return;
    const std::string_view front = std::string_view(buffer).substr(at, filled - at);
    if (front.starts_with(byte_order_mark)) at += byte_order_mark.size();
  }

  void quoted_cell() {
    any_quotes = true;
    ++at;
    for (;;) {
      const int c = peek();
      if (c < 0) fail_row("an open quote at the end of the file", "a closing \"");
      ++at;
      if (c == '"') {
        if (peek() != '"') break;
        ++at;
      } else if (c == '\n') {
        end_line();
      }
      add(static_cast<char>(c));
    }
    const int after = peek();
    if (after >= 0 && after != ',' && after != '\n' && after != '\r') {
      fail_row(printable(std::string(1, static_cast<char>(after))), "a comma or line end after a closing quote");
    }
  }

  void plain_cell() {
    for (;;) {
      if (peek() < 0) return;
      const char* begin = buffer.data() + at;
      const char* end = buffer.data() + filled;
      const char* stop =
          std::find_if(begin, end, [](char c) { return c == ',' || c == '\n' || c == '\r' || c == '\0'; });
      if (text.size() + static_cast<size_t>(stop - begin) > limits.max_row_bytes) {
        fail_row("", fmt::format("at most {} bytes in a row", limits.max_row_bytes));
      }
      text.append(begin, stop);
      at += static_cast<size_t>(stop - begin);
      if (stop == end) continue;
      if (*stop == '\0') add('\0');
      return;
    }
  }

  // Reads one record into text and cell_ends; false at the end of the file.
  bool read_record() {
    text.clear();
    cell_ends.clear();
    any_quotes = false;
    line = next_line;
    if (peek() < 0) return false;
    for (;;) {
      peek() == '"' ? quoted_cell() : plain_cell();
      end_cell();
      const int c = peek();
      if (c < 0) return true;
      ++at;
      if (c == ',') continue;
      if (c == '\r' && peek() == '\n') ++at;
      end_line();
      return true;
    }
  }

  bool is_blank() const { return cell_ends.size() == 1 && text.empty() && !any_quotes; }

  std::string_view cell(size_t column) const {
    ensure(column < cell_ends.size(), "a cell is read from a row that next() has found, by a column it has");
    const size_t begin = column == 0 ? 0 : cell_ends[column - 1];
    return std::string_view(text).substr(begin, cell_ends[column] - begin);
  }

  void read_header() {
    skip_byte_order_mark();
    if (!read_record())
      throw InputError({.source = source, .value = "an empty file", .expected = "a header line with column names"});
    for (size_t i = 0; i < cell_ends.size(); ++i) {
      std::string name(cell(i));
      if (name.empty()) fail_row(fmt::format("column {} without a name", i + 1), "a name for each column");
      if (std::find(columns.begin(), columns.end(), name) != columns.end())
        fail_row(printable(name), "each column name only once");
      columns.push_back(std::move(name));
    }
  }
};

CsvReader::CsvReader(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->read_header();
}

CsvReader::CsvReader(const std::filesystem::path& path, CsvLimits limits) : state_(std::make_unique<State>()) {
  state_->source = path.string();
  state_->buffer.resize(largest_buffer);
  state_->limits = limits;
  auto stream = std::make_shared<FileStream>(path, limits.max_bytes);  // std::function wants copyable captures
  state_->read_more = [stream](std::span<char> piece) { return stream->read(piece); };
  state_->read_header();
}

CsvReader CsvReader::from_text(std::string text, std::string source, CsvLimits limits) {
  if (text.size() > limits.max_bytes) {
    throw InputError({.source = source,
                      .value = fmt::format("{} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", limits.max_bytes)});
  }
  auto state = std::make_unique<State>();
  state->source = std::move(source);
  state->limits = limits;
  state->buffer.resize(std::clamp<size_t>(text.size(), 1, largest_buffer));
  state->read_more = [text = std::move(text), given = size_t{0}](std::span<char> piece) mutable {
    const size_t size = std::min(piece.size(), text.size() - given);
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(given), size, piece.begin());
    given += size;
    return size;
  };
  return CsvReader(std::move(state));
}

CsvReader::~CsvReader() = default;
CsvReader::CsvReader(CsvReader&&) noexcept = default;
CsvReader& CsvReader::operator=(CsvReader&&) noexcept = default;

const std::string& CsvReader::source() const {
  return state_->source;
}
const std::vector<std::string>& CsvReader::columns() const {
  return state_->columns;
}
size_t CsvReader::row() const {
  return state_->row;
}
int CsvReader::line() const {
  return state_->line;
}
std::string_view CsvReader::cell(size_t column) const {
  return state_->cell(column);
}

std::optional<size_t> CsvReader::find_column(std::string_view name) const {
  const auto found = std::find(state_->columns.begin(), state_->columns.end(), name);
  if (found == state_->columns.end()) return std::nullopt;
  return static_cast<size_t>(found - state_->columns.begin());
}

size_t CsvReader::column(std::string_view name) const {
  if (const std::optional<size_t> found = find_column(name)) return *found;
  throw InputError({.source = state_->source,
                    .line = 1,
                    .path = "header",
                    .value = printable(fmt::format("{}", fmt::join(state_->columns, ","))),
                    .expected = fmt::format("a column `{}`", name),
                    .suggestion = nearest_name(name, state_->columns).value_or("")});
}

bool CsvReader::next() {
  State& state = *state_;
  ++state.row;  // first, so that a complaint while reading names the right row
  do {
    if (!state.read_record()) {
      --state.row;
      return false;
    }
  } while (state.is_blank());
  if (state.cell_ends.size() != state.columns.size()) {
    state.fail_row(fmt::format("{} cells", state.cell_ends.size()),
                   fmt::format("{} cells as in the header", state.columns.size()));
  }
  return true;
}

double CsvReader::number(size_t column, Range<double> allowed) const {
  const std::optional<double> value = parse_number(cell(column));
  if (!value || !allowed.holds(*value)) fail(column, range_text(allowed));
  return *value;
}

int64_t CsvReader::integer(size_t column, Range<int64_t> allowed) const {
  const std::optional<int64_t> value = parse_integer(cell(column));
  if (!value || !allowed.holds(*value)) fail(column, range_text(allowed, parse_number(cell(column)).value_or(0)));
  return *value;
}

void CsvReader::fail(size_t column, std::string expected, std::string suggestion) const {
  throw InputError({.source = state_->source,
                    .line = state_->line,
                    .path = fmt::format("row {}, column {}", state_->row, state_->columns[column]),
                    .value = cell(column).empty() ? "(empty)" : printable(cell(column)),
                    .expected = std::move(expected),
                    .suggestion = std::move(suggestion)});
}

std::string csv_cell(std::string_view text) {
  const bool special = text.find_first_of(",\"\r\n") != std::string_view::npos || text.starts_with(byte_order_mark);
  if (!special) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace foretoken
