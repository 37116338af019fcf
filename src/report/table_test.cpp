#include "report/table.h"

#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken {
namespace {

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

TEST(Table, a_wide_table_is_cut_to_the_width_at_its_widest_left_column) {
  Table table({{"name", Table::Align::left}, {"value", Table::Align::right}});
  table.add({std::string(300, 'x'), "42"});
  std::istringstream lines(table.text(100));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_NE(table.text(100).find("xx...xx"), std::string::npos);
}

TEST(Table, a_cell_that_is_cut_keeps_both_its_ends) {
  Table table({{"name", Table::Align::left}, {"v", Table::Align::right}});
  table.add({"layout_tp8_pp2_dp4_fp8", "1"});
  table.add({"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", "2"});
  EXPECT_NE(table.text(14).find("layo..._fp8  1\n"), std::string::npos) << table.text(14);
  EXPECT_NE(table.text(14).find("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9...\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9  2"),
            std::string::npos);
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

}  // namespace
}  // namespace foretoken
