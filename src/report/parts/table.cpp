#include "report/parts/table.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string_view>

#include "base/error.h"

namespace foretoken {
namespace {

std::atomic<size_t> columns_of_page = 100;

constexpr size_t column_gap = 2;

// Characters, not bytes: continuation bytes of UTF-8 take no column.
size_t display_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool begins_character(char c) {
  return (c & 0xC0) != 0x80;
}

// Where a word of more than `width` characters is best broken: behind the last sign that joins parts of a name, else at
// the width. In bytes.
size_t break_of(std::string_view word, size_t width) {
  constexpr std::string_view joints = "/-_,:;=";
  size_t characters = 0, joint = 0, i = 0;
  for (; i < word.size(); ++i) {
    if (begins_character(word[i]) && ++characters > width) break;
    if (joints.find(word[i]) != std::string_view::npos) joint = i + 1;
  }
  constexpr size_t least_kept = 3;
  return joint >= least_kept ? joint : i;
}

// The lines of a cell that is `width` wide, broken at spaces; longer words are broken as well.
std::vector<std::string> cell_lines(const std::string& text, size_t width) {
  if (display_width(text) <= width) return {text};
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t used = display_width(lines.back());
    if (used > 0 && used + 1 + display_width(word) > width) lines.emplace_back();
    while (display_width(word) > width) {
      const size_t end = break_of(word, width);
      lines.back() += word.substr(0, end);
      lines.emplace_back();
      word.erase(0, end);
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

size_t longest_word(const std::string& text) {
  size_t longest = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) longest = std::max(longest, display_width(word));
  return longest;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  ensure(cells.size() == columns_.size(), "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

void Table::add_rule() {
  rows_.emplace_back();
}

std::vector<size_t> Table::widths(size_t max_width) const {
  constexpr size_t least_width = 8;
  std::vector<size_t> widths, words;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = display_width(columns_[i].title), word = longest_word(columns_[i].title);
    for (const auto& row : rows_) {
      if (row.empty()) continue;
      width = std::max(width, display_width(row[i]));
      word = std::max(word, longest_word(row[i]));
    }
    widths.push_back(width);
    words.push_back(word);
  }
  // Of the columns that may shrink, the widest; first without breaking words, then with, names last.
  const auto shrink = [&](bool breaks_words, bool breaks_names) {
    const auto total = [&] { return std::accumulate(widths.begin(), widths.end(), column_gap * (widths.size() - 1)); };
    while (total() > max_width) {
      size_t widest = widths.size();
      for (size_t i = 0; i < widths.size(); ++i) {
        const size_t least = breaks_words ? least_width : std::max(least_width, words[i]);
        const bool may_shrink = columns_[i].align == Align::left && (breaks_names || !columns_[i].is_name);
        const bool can_shrink = may_shrink && widths[i] > least;
        if (can_shrink && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
      }
      if (widest == widths.size()) return;
      --widths[widest];
    }
  };
  shrink(false, false);
  shrink(true, false);
  shrink(true, true);
  return widths;
}

std::string Table::text(size_t max_width) const {
  const std::vector<size_t> widths = this->widths(max_width);
  std::string out;
  const auto append_row = [&](auto cell_of) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const bool wraps = columns_[i].align == Align::left;
      cells.push_back(wraps ? cell_lines(cell_of(i), widths[i]) : std::vector<std::string>{cell_of(i)});
      height = std::max(height, cells.back().size());
    }
    for (size_t at = 0; at < height; ++at) {
      std::string line;
      for (size_t i = 0; i < columns_.size(); ++i) {
        const std::string cell = at < cells[i].size() ? cells[i][at] : "";
        const size_t padding = widths[i] - std::min(widths[i], display_width(cell));
        if (i > 0) line.append(column_gap, ' ');
        if (columns_[i].align == Align::right) line.append(padding, ' ');
        line += cell;
        if (columns_[i].align == Align::left) line.append(padding, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
  };
  const size_t total = std::accumulate(widths.begin(), widths.end(), column_gap * (widths.size() - 1));
  const std::string rule(std::min(total, max_width), '-');

  append_row([&](size_t i) { return columns_[i].title; });
  out += rule + '\n';
  for (const auto& row : rows_) {
    if (row.empty()) {
      out += rule + '\n';
    } else {
      append_row([&](size_t i) { return row[i]; });
    }
  }
  return out;
}

std::string bar(double share, size_t width) {
  const double clamped = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const auto filled = static_cast<size_t>(std::lround(clamped * static_cast<double>(width)));
  return std::string(filled, '#') + std::string(width - filled, '.');
}

std::string wrap_lines(const std::string& text, size_t width, size_t indent) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (line.size() > width) {
      size_t cut = line.rfind(' ', width);
      if (cut == std::string::npos || cut <= indent) cut = line.find(' ', width);  // one long word: leave it whole
      if (cut == std::string::npos) break;
      out += line.substr(0, cut) + '\n';
      line = std::string(indent, ' ') + line.substr(cut + 1);
    }
    out += line + '\n';
  }
  return out;
}

size_t page_width() {
  return columns_of_page;
}

void set_page_width(size_t columns) {
  columns_of_page = columns;
}

}  // namespace foretoken
