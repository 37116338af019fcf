#include "report/drawing/html_page.h"

#include <gtest/gtest.h>

#include "report/drawing/line_chart.h"

namespace foretoken::html_page_test {

size_t count_of(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(HtmlPage, what_it_is_given_is_text_and_never_markup) {
  HtmlPage page("<script>alert(1)</script>");
  page.sentence("a < b & \"c\"");
  page.table({"<b>"}, {{"<i>", "</td>"}});
  page.preformatted("--x '<pre>'\nsecond line");
  const std::string html = page.finish();
  for (const char* markup : {"<script", "<b>", "<i>", "'<pre>"})
    EXPECT_EQ(html.find(markup), std::string::npos) << markup;
  EXPECT_NE(html.find("\nsecond line"), std::string::npos);
  EXPECT_EQ(count_of(html, "<td"), count_of(html, "</td>"));
}

TEST(HtmlPage, words_are_read_from_the_left_and_numbers_compared_at_the_right) {
  HtmlPage page("title");
  page.table({"name", "count", "kind"}, {{"a", "12", "fast"}, {"b", "", "8 bits"}, {"c", "3", ""}});
  EXPECT_NE(page.finish().find("<td>12</td><td>fast</td>"), std::string::npos)
      << "one number makes a column of numbers";
  page.table({"name", "kind"}, {{"a", "slow"}, {"b", ""}});
  EXPECT_NE(page.finish().find("<td class=\"words\">slow</td>"), std::string::npos);
}

TEST(HtmlPage, figures_can_be_scrolled_where_the_screen_is_narrow) {
  HtmlPage page("title");
  page.figure("<svg></svg>", "caption");
  EXPECT_NE(page.finish().find("<div class=\"scroll\" tabindex=\"0\"><svg>"), std::string::npos);
}

TEST(HtmlPage, asks_nothing_of_the_outside) {
  HtmlPage page("title");
  page.figure(line_chart_svg({.title = "chart", .lines = {{.name = "line", .points = {{0, 1}, {1, 3}}}}}), "caption");
  const std::string html = page.finish();
  for (const char* outside : {"<link", "src=", "@import", "url("}) EXPECT_EQ(html.find(outside), std::string::npos);
}

TEST(LineChart, without_points_says_so_and_with_one_does_not_divide_by_nothing) {
  EXPECT_NE(line_chart_svg({.title = "empty"}).find("nothing to show"), std::string::npos);
  const std::string one =
      line_chart_svg({.title = "one", .lines = {{.name = "line", .points = {{0, 0}}}}, .logarithmic_y = true});
  EXPECT_EQ(one.find("nan"), std::string::npos);
  EXPECT_EQ(one.find("inf"), std::string::npos);
}

TEST(PartsBar, shares_are_of_the_whole) {
  const std::string half = parts_bar_svg("bar", {{"weights", 1, "1 GB"}}, 2);
  EXPECT_NE(half.find("weights 1 GB (50%)"), std::string::npos);
  EXPECT_NE(parts_bar_svg("bar", {{"nothing", 0, "0"}}).find("(0%)"), std::string::npos);
}

}  // namespace foretoken::html_page_test
