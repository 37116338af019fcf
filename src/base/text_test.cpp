#include "base/text.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/range.h"

namespace foretoken::text_test {

TEST(Text, pieces_between_separators_may_be_empty_and_words_may_not) {
  EXPECT_EQ(split("a;b;;c", ";"), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_EQ(split(" x a x ", " x "), (std::vector<std::string_view>{"", "a", ""}));
  EXPECT_EQ(split("", ","), (std::vector<std::string_view>{""}));
  EXPECT_EQ(split_words(";a;;b;", ";"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_TRUE(split_words("", ",").empty());
}

TEST(Text, a_number_is_the_whole_text_or_nothing) {
  EXPECT_EQ(parse_number("1.5"), 1.5);
  EXPECT_EQ(parse_number("+1.5"), 1.5);
  EXPECT_EQ(parse_number("-1e-3"), -0.001);
  EXPECT_EQ(parse_number("007"), 7);
  for (const char* text : {"",      " ",   " 1",  "1 ", "1,5", "1.5x", "nan", "inf", "-inf", "infinity",
                           "1e400", "+-1", "++1", "+",  "-",   "0x10", "1e",  "--1", ".",    "1_000"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(Text, an_integer_is_exact_or_nothing) {
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("1000000000000000000000000000000"), std::nullopt);
  EXPECT_EQ(parse_integer("1e30"), std::nullopt);
  EXPECT_EQ(parse_integer("4096.0"), 4096);
  EXPECT_EQ(parse_integer("1e3"), 1000);
  EXPECT_EQ(parse_integer("+12"), 12);
  EXPECT_EQ(parse_integer("4096.5"), std::nullopt);
  EXPECT_EQ(exact_integer(9007199254740992.0), 9007199254740992);
  EXPECT_EQ(exact_integer(9007199254740994.0), std::nullopt);
  EXPECT_EQ(exact_integer(std::nan("")), std::nullopt);
  EXPECT_EQ(exact_integer(-HUGE_VAL), std::nullopt);
}

TEST(Text, every_finite_number_survives_the_way_to_text_and_back) {
  RandomStream stream(1, "text");
  for (int trial = 0; trial < 20000; ++trial) {
    const uint64_t bits = stream.bits();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(parse_number(number_text(value)), value) << number_text(value);
  }
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(100000), "100000");
  EXPECT_EQ(number_text(3.35e12), "3350000000000");
  EXPECT_EQ(number_text(1e30), "1e+30");
  EXPECT_EQ(number_text(5e-324), "5e-324");
}

TEST(Text, quantities_for_people_have_three_digits_and_a_fitting_prefix) {
  EXPECT_EQ(duration_text(1.234e-3), "1.23 ms");
  EXPECT_EQ(duration_text(45.6e-6), "45.6 us");
  EXPECT_EQ(duration_text(0.9999), "1.00 s");
  EXPECT_EQ(duration_text(0.0009996), "1.00 ms");
  EXPECT_EQ(duration_text(2e-9), "2.00 ns");
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(7200), "7200 s");
  EXPECT_EQ(bytes_text(1.41e9), "1.41 GB");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(999.6), "1.00 kB");
  EXPECT_EQ(bytes_text(99.96e9), "100 GB");
  EXPECT_EQ(count_text(70.6e9), "70.6 B");
  EXPECT_EQ(count_text(12), "12");
  EXPECT_EQ(rounded_text(1.234e6), "1.23 M");
  EXPECT_EQ(rounded_text(81.26), "81.3");
  EXPECT_EQ(count_text(1.2e6), "1.20 M");
  EXPECT_EQ(rate_text(9.89e14, "FLOP/s"), "989 TFLOP/s");
}

TEST(Text, case_is_ignored_for_ascii_letters_only) {
  EXPECT_EQ(lower_case("Llama-3.1-8B"), "llama-3.1-8b");
  EXPECT_EQ(lower_case("\xc3\x84"), "\xc3\x84");
  EXPECT_TRUE(equal_ignoring_case("H100_SXM", "h100_sxm"));
  EXPECT_FALSE(equal_ignoring_case("h100", "h100_sxm"));
  EXPECT_FALSE(equal_ignoring_case("[", "{"));
  EXPECT_TRUE(starts_with_ignoring_case("H100_SXM", "h100"));
  EXPECT_FALSE(starts_with_ignoring_case("h", "h100"));
  EXPECT_TRUE(contains_ignoring_case("meta-llama/Llama-3", "LLAMA-3"));
  EXPECT_TRUE(contains_ignoring_case("a", ""));
  EXPECT_FALSE(contains_ignoring_case("", "a"));
}

// The encoder of RFC 3629, section 3.
std::string utf8(uint32_t code) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 63))};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63))};
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
          byte(0x80 | (code & 63))};
}

TEST(Text, exactly_the_unicode_characters_are_well_formed_utf8) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    const std::string text = utf8(code);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(utf8_length(text + "x"), surrogate ? 0 : text.size()) << std::hex << code;
    ASSERT_EQ(utf8_length(std::string_view(text).substr(0, text.size() - 1)), 0u) << std::hex << code;
  }
  for (const char* text : {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "\x80", "\xff", ""}) {
    EXPECT_EQ(utf8_length(text), 0u);
  }
}

TEST(ShellWords, are_quoted_where_a_shell_would_change_them) {
  EXPECT_EQ(shell_word("--model"), "--model");
  EXPECT_EQ(shell_word("Llama-3.1-8B"), "Llama-3.1-8B");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("{\"k\": 4}"), "'{\"k\": 4}'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(ShellWords, what_was_quoted_is_read_back) {
  const std::vector<std::string> words = {"step", "--model", "a b", "it's", "{\"k\": \"v\"}", "", "back\\slash"};
  std::string line;
  for (const std::string& word : words) line += shell_word(word) + "  ";
  EXPECT_EQ(shell_words(line), words);
  EXPECT_FALSE(shell_words("an 'open quote"));
  EXPECT_EQ(shell_words("\"a \\\" b\""), std::vector<std::string>{"a \" b"});
}

TEST(Range, says_what_it_allows) {
  EXPECT_EQ(range_text(Range<double>{}), "a number");
  EXPECT_EQ(range_text(Range<double>{.least = 0.5}), "a number of at least 0.5");
  EXPECT_EQ(range_text(Range<int64_t>{.most = 8}), "a whole number of at most 8");
  EXPECT_EQ(range_text(Range<int64_t>{1, 8}), "a whole number between 1 and 8");
  EXPECT_TRUE((Range<int64_t>{1, 8}.holds(8)));
  EXPECT_FALSE((Range<int64_t>{1, 8}.holds(0)));
  EXPECT_FALSE(Range<double>{}.holds(std::nan("")));
}

TEST(ScaledNumbers, lower_case_counts_thousands_and_upper_case_1024s) {
  EXPECT_EQ(parse_scaled_number("4096"), 4096);
  EXPECT_EQ(parse_scaled_number("4k"), 4000);
  EXPECT_EQ(parse_scaled_number("4K"), 4096);
  EXPECT_EQ(parse_scaled_number("1.5m"), 1'500'000);
  EXPECT_EQ(parse_scaled_number("1G"), 1073741824);
  EXPECT_EQ(parse_scaled_number("2t"), 2e12);
  EXPECT_EQ(parse_scaled_number("1T"), 1099511627776);
  for (const char* wrong : {"", "k", "4kk", "4 k", "k4", "nank", "4x"})
    EXPECT_FALSE(parse_scaled_number(wrong)) << wrong;
}

}  // namespace foretoken::text_test
