#include "base/json.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::json_test {

using testing::HasSubstr;

InputProblem problem_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "f.json", limits);
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, "f.json");
    return error.problem();
  }
  ADD_FAILURE() << "no complaint about " << text.substr(0, 100);
  return {};
}

bool same(const Json& a, const Json& b) {
  const auto is_number = [](const Json& x) {
    return x.kind() == Json::Kind::integer || x.kind() == Json::Kind::number;
  };
  if (is_number(a) && is_number(b)) {
    return a.number() == b.number() && a.integer() == b.integer() &&
           std::signbit(a.number()) == std::signbit(b.number());
  }
  if (a.kind() != b.kind() || a.boolean() != b.boolean() || a.string() != b.string()) return false;
  if (a.items().size() != b.items().size() || a.members().size() != b.members().size()) return false;
  for (size_t i = 0; i < a.items().size(); ++i) {
    if (!same(a.items()[i], b.items()[i])) return false;
  }
  for (size_t i = 0; i < a.members().size(); ++i) {
    if (a.members()[i].first != b.members()[i].first || !same(a.members()[i].second, b.members()[i].second))
      return false;
  }
  return true;
}

std::string random_string(RandomStream& stream) {
  static const std::string alphabet[] = {
      "a", "\"", "\\", "\n", "\t", std::string(1, '\0'), "\x01", "\x7f", "/", "\xc3\xbc", "\xf0\x9f\x98\x80"};
  std::string text;
  for (uint64_t i = stream.below(8); i > 0; --i) text += alphabet[stream.below(std::size(alphabet))];
  return text;
}

double random_finite(RandomStream& stream) {
  for (;;) {
    const uint64_t bits = stream.bits();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    // A whole number may come back as an integer: the same value, another kind.
    if (std::isfinite(value) && (std::trunc(value) != value || std::abs(value) > 1e30)) return value;
  }
}

Json random_json(RandomStream& stream, int depth) {
  switch (stream.below(depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1:
      return stream.below(2) == 1;
    case 2:
      return static_cast<int64_t>(stream.bits());
    case 3:
      return random_finite(stream);
    case 4:
      return -0.0;
    case 5:
      return random_string(stream);
    case 6: {
      Json array = Json::array();
      for (uint64_t i = stream.below(5); i > 0; --i) array.push(random_json(stream, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (uint64_t i = stream.below(5); i > 0; --i) object.set(random_string(stream), random_json(stream, depth - 1));
      return object;
    }
  }
}

TEST(Json, what_is_written_reads_back_the_same) {
  RandomStream stream(1, "json");
  for (int trial = 0; trial < 3000; ++trial) {
    const Json value = random_json(stream, 4);
    const std::string wide = value.dump(), narrow = value.dump(0);
    ASSERT_TRUE(same(parse_json(wide, "wide"), value)) << wide;
    ASSERT_TRUE(same(parse_json(narrow, "narrow"), value)) << narrow;
    ASSERT_EQ(narrow.find('\n'), std::string::npos);
    ASSERT_EQ(parse_json(wide, "again").dump(), wide);
  }
}

TEST(Json, documents_are_written_in_order_and_indented) {
  Json document = Json::object({{"b", 1}, {"a", Json::array({true, Json(), "x"})}, {"empty", Json::array()}});
  document.set("b", 2.5).set("none", Json::object());
  EXPECT_EQ(document.dump(0), R"({"b":2.5,"a":[true,null,"x"],"empty":[],"none":{}})");
  EXPECT_EQ(Json::object({{"a", Json::array({1, 2})}}).dump(), "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
}

TEST(Json, what_json_cannot_say_is_written_as_something_it_can) {
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(HUGE_VAL).dump(), "null");
  EXPECT_EQ(Json("a\xff"
                 "b\xc3")
                .dump(),
            "\"a\xef\xbf\xbd"
            "b\xef\xbf\xbd\"");
  EXPECT_THROW(Json{std::numeric_limits<size_t>::max()}, InternalError);
}

TEST(Json, every_value_knows_its_line) {
  const Json document =
      parse_json("{\n\"a\": 1\n,\n\"b\": [\n2,\n3.5\n, true\n, \"s\"\n],\n\"c\": {\n\"d\":\n-7}\n}\n", "f");
  EXPECT_EQ(document.line(), 1);
  EXPECT_EQ(document.find("a")->line(), 2);  // a number followed by a newline
  const Json& list = *document.find("b");
  EXPECT_EQ(list.line(), 4);
  EXPECT_EQ(list.items()[0].line(), 5);
  EXPECT_EQ(list.items()[1].line(), 6);
  EXPECT_EQ(list.items()[2].line(), 7);
  EXPECT_EQ(list.items()[3].line(), 8);
  EXPECT_EQ(document.find("c")->line(), 10);
  EXPECT_EQ(document.find("c")->find("d")->line(), 12);
  EXPECT_EQ(parse_json("\n\n42\n", "f").line(), 3);
  EXPECT_EQ(parse_json("\n42", "f").line(), 2);
}

TEST(Json, a_syntax_error_is_placed_at_the_character_at_fault) {
  struct Case {
    std::string_view text;
    int line;
    std::string column;
  };
  for (const Case& c : {Case{"{\"a\": x}", 1, "column 7"}, Case{"{\n\"a\": tru\n}", 2, "column 9"},
                        Case{"[1,\n2,\n\n  ]", 4, "column 3"}, Case{"[1,\n2", 2, "column 2"},
                        Case{"{} x", 1, "column 4"}, Case{"[1]\n[2]", 2, "column 1"}, Case{"'a'", 1, "column 1"},
                        Case{"{\"a\"\n 1}", 2, "column 2"}, Case{"\xEF\xBB\xBF x", 1, "column 2"}}) {
    const InputProblem problem = problem_of(c.text);
    EXPECT_EQ(problem.line, c.line) << c.text;
    EXPECT_EQ(problem.path, c.column) << c.text;
    EXPECT_THAT(problem.expected, testing::StartsWith("valid JSON: ")) << c.text;
  }
}

TEST(Json, a_text_that_was_cut_off_is_told_so) {
  for (const char* text : {"{\"a\": 1", "{\"a\": ", "{\"a\"", "{\"a\": [1, 2\n", "{\"a\": \"b", "{\"a\": \"b\n"}) {
    EXPECT_THAT(problem_of(text).expected, testing::EndsWith("; the text ends here, so it may be cut off")) << text;
  }
  EXPECT_THAT(problem_of("{\"a\": \"b\n}").expected, testing::EndsWith("without its closing quote on the same line"));
}

TEST(Json, a_syntax_error_gives_the_reason_and_not_the_parsers_name) {
  for (const char* text : {"{\"a: b\": x}", "[1e400]", "[", "\"\x01\"", "\"a; last read: b"}) {
    const std::string expected = problem_of(text).expected;
    EXPECT_THAT(expected, testing::Not(HasSubstr("json.exception"))) << text;
    EXPECT_THAT(expected, testing::Not(HasSubstr("last read"))) << text;
    EXPECT_GT(expected.size(), 25u) << expected;
  }
  EXPECT_THAT(problem_of("[1e400]").expected, HasSubstr("number overflow"));
  EXPECT_THAT(problem_of("{\"a: b\": x}").expected, HasSubstr("invalid literal"));
}

TEST(Json, what_is_not_json_is_refused) {
  for (const std::string_view text :
       {"NaN",     "nan",         "Infinity", "-Infinity", "[1,]",   "{\"a\":1,}", "{a:1}",    "01",      "+1",
        ".5",      "1.",          "0x1",      "1e400",     "-1e400", "// note\n1", "{\"a\":1", "[",       "\"abc",
        "\"\\x\"", "\"\\ud800\"", "tru",      "nulll",     "[1 2]",  "]",          "\xEF\xBB", "\xFE\xFF"}) {
    EXPECT_EQ(problem_of(text).expected.substr(0, 10), "valid JSON") << text;
  }
  problem_of(std::string_view("[1]\0", 4));
  problem_of(std::string_view("\"a\0b\"", 5));
}

TEST(Json, broken_utf8_is_refused) {
  for (const char* text : {"\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\""})
    problem_of(text);
  EXPECT_EQ(parse_json("\"gr\xc3\xbc\xc3\x9f \\ud83d\\ude00\"", "f").string(), "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
}

TEST(Json, a_byte_order_mark_is_passed_over) {
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{\"a\":1}", "f").find("a")->integer(), 1);
}

TEST(Json, a_repeated_key_is_refused_where_it_stands) {
  const InputProblem problem = problem_of("{\n\"a\": 1,\n\"b\": {\"a\": 2},\n\"a\": 3\n}");
  EXPECT_EQ(problem.line, 4);
  EXPECT_EQ(problem.path, "a");
  EXPECT_EQ(problem.value, "3");
  EXPECT_EQ(problem.expected, "each key only once");
  EXPECT_EQ(problem_of("{\"x\": {\"\": 1, \"\": 2}}").expected, "each key only once");
}

TEST(Json, an_object_of_many_keys_takes_no_quadratic_time) {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i) text += "\"key" + std::to_string(i) + "\":0,";
  text += "\"last\":1}";
  EXPECT_EQ(parse_json(text, "f").members().size(), 100001u);
}

TEST(Json, every_text_and_key_can_be_changed_in_place) {
  Json json = parse_json(R"({"a": ["b", {"c": "d"}], "e": 1})", "f");
  json.change_texts([](std::string& text) { text += "!"; });
  EXPECT_EQ(json.dump(0), R"({"a!":["b!",{"c!":"d!"}],"e!":1})");
}

TEST(Json, deep_nesting_is_refused_not_followed) {
  EXPECT_EQ(problem_of(std::string(100000, '[')).expected, "at most 64 nested levels");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":\n";
  const InputProblem problem = problem_of(objects);
  EXPECT_EQ(problem.expected, "at most 64 nested levels");
  EXPECT_EQ(problem.line, 65);
  EXPECT_NO_THROW(parse_json(std::string(64, '[') + std::string(64, ']'), "f"));
  EXPECT_NO_THROW(parse_json(std::string(1000, '[') + std::string(1000, ']'), "f", {.max_depth = 1000}));
}

TEST(Json, limits_on_size_and_values_are_kept) {
  EXPECT_EQ(problem_of("[1,2,3]", {.max_bytes = 6}).expected, "at most 6 bytes");
  EXPECT_EQ(problem_of("[1,2,3]", {.max_values = 3}).expected, "at most 3 values");
  EXPECT_NO_THROW(parse_json("[1,2,3]", "f", {.max_bytes = 7, .max_values = 4}));
}

TEST(Json, integers_are_exact_to_64_bits_and_doubles_beyond) {
  EXPECT_EQ(parse_json("9223372036854775807", "f").integer(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_json("-9223372036854775808", "f").integer(), std::numeric_limits<int64_t>::min());
  for (const char* text :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809"}) {
    const Json value = parse_json(text, "f");
    EXPECT_EQ(value.kind(), Json::Kind::number) << text;
    EXPECT_EQ(value.number(), std::strtod(text, nullptr)) << text;
  }
}

TEST(Json, a_number_too_small_for_a_double_is_zero_and_one_too_large_is_refused) {
  const std::string zeros(500, '0');
  for (const std::string& text :
       {std::string("1e-400"), "0." + zeros + "1", "5" + zeros + "e-900", std::string("1.5e-99999999999999999999")}) {
    EXPECT_EQ(parse_json(text, "f").number(), 0) << text;
    EXPECT_TRUE(std::signbit(parse_json("-" + text, "f").number())) << text;
  }
  for (const std::string& text : {"1" + zeros, "1" + zeros + ".5", "5" + zeros + "e-100", "0." + zeros + "1e900",
                                  std::string("1E+99999999999999999999")}) {
    EXPECT_THAT(problem_of(text).expected, HasSubstr("number overflow")) << text;
  }
  EXPECT_EQ(parse_json("4.9e-324", "f").number(), std::numeric_limits<double>::denorm_min());
}

TEST(Json, a_missing_file_is_an_input_error) {
  EXPECT_THROW(read_json_file("no/such/file.json"), InputError);
  EXPECT_THAT([] { parse_json(" \n", "f.json"); },
              testing::ThrowsMessage<InputError>("f.json: empty\n  expected a JSON document"));
}

}  // namespace foretoken::json_test
