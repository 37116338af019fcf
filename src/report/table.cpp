#include "report/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string_view>

#include "base/error.h"

namespace foretoken {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no column.
size_t display_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Cut in the middle: names of one family begin alike, and what tells them apart is often their end.
std::string shortened(const std::string& text, size_t width) {
  constexpr std::string_view gap = "...";
  const size_t all = display_width(text);
  if (all <= width) return text;
  const size_t kept = width - std::min(width, gap.size());
  const size_t head = (kept + 1) / 2, tail = kept - head;
  std::string result;
  size_t position = 0;  // of the character, from 1
  for (const char c : text) {
    if ((c & 0xC0) != 0x80 && ++position == head + 1) result += gap;
    if (position <= head || position > all - tail) result += c;
  }
  return result;
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

std::string Table::text(size_t max_width) const {
  constexpr size_t gap = 2, least_width = 8;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) {
      if (!row.empty()) width = std::max(width, display_width(row[i]));
    }
    widths.push_back(width);
  }
  const auto total = [&] { return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1)); };
  while (total() > max_width) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool can_shrink = columns_[i].align == Align::left && widths[i] > least_width;
      if (can_shrink && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }

  std::string out;
  const auto append_line = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = columns_[i].align == Align::left ? shortened(cell_of(i), widths[i]) : cell_of(i);
      const size_t padding = widths[i] - std::min(widths[i], display_width(cell));
      if (i > 0) line.append(gap, ' ');
      if (columns_[i].align == Align::right) line.append(padding, ' ');
      line += cell;
      if (columns_[i].align == Align::left) line.append(padding, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  const std::string rule(std::min(total(), max_width), '-');

  append_line([&](size_t i) { return columns_[i].title; });
  out += rule + '\n';
  for (const auto& row : rows_) {
    if (row.empty()) {
      out += rule + '\n';
    } else {
      append_line([&](size_t i) { return row[i]; });
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

}  // namespace foretoken
