#include "report/parts/table.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::table_test {

TEST(Table, columns_are_aligned_under_their_titles) {
  Table table({{"name", Table::Align::left}, {"time", Table::Align::right}});
  table.add({"gemm", "1.00 ms"});
  table.add({"attention", "12 us"});
  EXPECT_EQ(table.text(),
            "name          time\n"
            "------------------\n"
            "gemm       1.00 ms\n"
            "attention    12 us\n");
}

TEST(Table, a_wide_table_takes_more_lines_and_loses_nothing) {
  Table table({{"name", Table::Align::left}, {"value", Table::Align::right}});
  table.add({std::string(300, 'x'), "42"});
  const std::string text = table.text(100);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_EQ(std::count(text.begin(), text.end(), 'x'), 300);
}

TEST(Table, cells_break_at_spaces_before_names_are_broken) {
  Table table({{"name", Table::Align::left}, {"what it is", Table::Align::left}, {"v", Table::Align::right}});
  table.add({"layout_tp8_pp2", "eight GPUs and two stages", "1"});
  EXPECT_EQ(table.text(32),
            "name            what it is     v\n"
            "--------------------------------\n"
            "layout_tp8_pp2  eight GPUs     1\n"
            "                and two\n"
            "                stages\n");
}

TEST(Table, a_long_name_breaks_where_its_parts_meet) {
  Table table({{"name", Table::Align::left}, {"v", Table::Align::right}});
  table.add({"layout_tp8_pp2_dp4_fp8", "1"});
  table.add({"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", "2"});
  EXPECT_EQ(table.text(14),
            "name         v\n"
            "--------------\n"
            "layout_tp8_  1\n"
            "pp2_dp4_fp8\n"
            "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9  2\n"
            "\xC3\xA9\n");
}

TEST(Table, characters_beyond_ascii_count_once) {
  Table table({{"name", Table::Align::left}, {"v", Table::Align::right}});
  table.add({"\xC3\xA9t\xC3\xA9", "1"});
  table.add({"four", "2"});
  EXPECT_NE(table.text().find("\xC3\xA9t\xC3\xA9   1\n"), std::string::npos);
}

TEST(Table, a_row_with_a_missing_cell_is_our_own_mistake) {
  Table table({{"a", Table::Align::left}, {"b", Table::Align::left}});
  EXPECT_THROW(table.add({"only one"}), InternalError);
}

TEST(Bar, a_share_outside_zero_to_one_is_clamped) {
  EXPECT_EQ(bar(0.5, 4), "##..");
  EXPECT_EQ(bar(-1, 4), "....");
  EXPECT_EQ(bar(7, 4), "####");
}

}  // namespace foretoken::table_test
