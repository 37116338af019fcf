#include "base/replace.h"

#include <gtest/gtest.h>

namespace foretoken::replace_test {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  replace_all(text, from, to);
  return text;
}

TEST(Replace, every_place_is_replaced) {
  EXPECT_EQ(replaced("a-b-c", "-", "::"), "a::b::c");
  EXPECT_EQ(replaced("a-b-c", "-", ""), "abc");
  EXPECT_EQ(replaced("abc", "-", "::"), "abc");
}

TEST(Replace, what_was_put_in_is_not_replaced_again) {
  EXPECT_EQ(replaced("aa", "a", "aa"), "aaaa");
}

TEST(Replace, nothing_is_found_nowhere) {
  EXPECT_EQ(replaced("abc", "", "x"), "abc");
}

}  // namespace foretoken::replace_test
