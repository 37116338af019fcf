// A text table for people: aligned columns, at most 100 characters wide.
#pragma once

#include <string>
#include <vector>

namespace foretoken {

// Columns that human output fits: 100, or those of a narrower terminal.
size_t page_width();
void set_page_width(size_t columns);

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
    bool is_name = false;  // other columns take several lines first
  };

  explicit Table(std::vector<Column> columns);
  void add(std::vector<std::string> cells);  // as many as there are columns
  void add_rule();                           // a line between groups of rows

  // Left-aligned cells take several lines where the table would be wider than `max_width`: nothing is cut off.
  std::string text(size_t max_width = page_width()) const;

 private:
  std::vector<size_t> widths(size_t max_width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

// A bar of `share` (0 to 1) of `width` characters: "######....".
std::string bar(double share, size_t width);

// Lines longer than `width` broken at spaces; what follows is indented by `indent`.
std::string wrap_lines(const std::string& text, size_t width, size_t indent);

}  // namespace foretoken
