#include "report/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "base/error.h"

namespace foretoken {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no column.
size_t display_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> all;
  for (const char c : text) {
    const bool starts_character = (c & 0xC0) != 0x80;
    if (starts_character || all.empty()) all.emplace_back();
    all.back() += c;
  }
  return all;
}

std::string shortened(const std::string& text, size_t width, Table::Align align) {
  if (align == Table::Align::right || display_width(text) <= width) return text;
  constexpr std::string_view dots = "...";
  const std::vector<std::string> all = characters(text);
  const size_t kept = width > dots.size() ? width - dots.size() : 0;
  const size_t at_end = align == Table::Align::name ? kept / 2 : 0;
  std::string result;
  for (size_t i = 0; i < kept - at_end; ++i) result += all[i];
  result += dots;
  for (size_t i = all.size() - at_end; i < all.size(); ++i) result += all[i];
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
      const bool can_shrink = columns_[i].align != Align::right && widths[i] > least_width;
      if (can_shrink && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }

  std::string out;
  const auto append_line = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = shortened(cell_of(i), widths[i], columns_[i].align);
      const size_t padding = widths[i] - std::min(widths[i], display_width(cell));
      if (i > 0) line.append(gap, ' ');
      if (columns_[i].align == Align::right) line.append(padding, ' ');
      line += cell;
      if (columns_[i].align != Align::right) line.append(padding, ' ');
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
