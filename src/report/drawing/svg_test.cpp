#include "report/drawing/svg.h"

#include <gtest/gtest.h>

namespace foretoken::svg_test {

size_t times_in(const std::string& whole, const std::string& part) {
  size_t count = 0;
  for (size_t at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1)) ++count;
  return count;
}

TEST(Svg, text_cannot_break_out_of_its_element) {
  Svg svg(100, 50, "a<b & \"c\"");
  svg.text({1, 2}, "</text><script>alert('x')</script>", {});
  svg.circle({5, 5}, 2, {.fill = "red"}, "<tip>");
  const std::string text = svg.finish();
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(times_in(text, "<text"), 1u);
  EXPECT_EQ(times_in(text, "</text>"), 1u);
  EXPECT_NE(text.find("<title>a&lt;b &amp; &quot;c&quot;</title>"), std::string::npos);
  EXPECT_NE(text.find("<title>&lt;tip&gt;</title>"), std::string::npos);
}

TEST(Svg, broken_utf8_and_control_characters_become_harmless) {
  EXPECT_EQ(svg_escaped("a\xFF"), "a\xEF\xBF\xBD");
  EXPECT_EQ(svg_escaped(std::string("a\0b\n", 4)), "a b ");
  EXPECT_EQ(svg_escaped("\xC3\xA9"), "\xC3\xA9");
}

TEST(Svg, is_one_element_that_refers_to_nothing_outside) {
  Svg svg(100, 50, "t");
  svg.line({0, 0}, {10, 10}, {.stroke = "black"});
  const std::string text = svg.finish();
  EXPECT_TRUE(text.starts_with("<svg "));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  EXPECT_EQ(text.find("href"), std::string::npos);
  EXPECT_EQ(times_in(text, "http"), 1u) << "the name of the format only";
}

TEST(Svg, coordinates_are_rounded_to_tenths_and_zero_has_no_sign) {
  Svg svg(10, 10, "t");
  svg.line({-0.01, 1.0 / 3}, {2, 2.26}, {.stroke = "black"});
  EXPECT_NE(svg.finish().find("x1=\"0\" y1=\"0.3\" x2=\"2\" y2=\"2.3\""), std::string::npos) << svg.finish();
}

}  // namespace foretoken::svg_test
