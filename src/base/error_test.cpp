#include "base/error.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/field_braces.h"

namespace foretoken::error_test {

std::string message(InputProblem problem) {
  return InputError(std::move(problem)).what();
}

TEST(Error, a_message_names_file_path_value_expectation_and_suggestion) {
  EXPECT_EQ(message({.source = "data/hardware/h100.json",
                     .path = "memory.bandwidth_gbps",
                     .value = "3.35",
                     .expected = "GB/s between 10 and 100000",
                     .suggestion = "3350"}),
            "data/hardware/h100.json: memory.bandwidth_gbps = 3.35\n"
            "  expected GB/s between 10 and 100000; did you mean 3350?");
}

TEST(Error, parts_that_are_not_known_leave_no_gaps) {
  EXPECT_EQ(message({.source = "f.csv", .line = 7, .path = "row 6, column m", .value = "x", .expected = "a number"}),
            "f.csv:7: row 6, column m = x\n  expected a number");
  EXPECT_EQ(message({.source = "f.csv", .value = "no such file", .expected = "a file that exists"}),
            "f.csv: no such file\n  expected a file that exists");
  EXPECT_EQ(message({.source = "f.json", .line = 1, .expected = "a key `a`"}), "f.json:1\n  expected a key `a`");
  EXPECT_EQ(message({.field = "device", .value = "h10", .suggestion = "h100"}), "{device}: h10\n  did you mean h100?");
  EXPECT_EQ(message({.path = "a.b", .value = "1"}), "a.b = 1");
  EXPECT_EQ(message({.value = "1", .expected = "2"}), "1\n  expected 2");
  EXPECT_EQ(message({.expected = "2"}), "expected 2");
}

TEST(Error, the_parts_of_a_problem_stay_available) {
  const InputError error({.source = "f", .line = 3, .path = "p"});
  EXPECT_EQ(error.problem().source, "f");
  EXPECT_EQ(error.problem().line, 3);
  EXPECT_EQ(error.problem().path, "p");
}

TEST(Error, only_names_of_fields_in_braces_are_named_anew) {
  const auto loud = [](std::string_view text) {
    return with_field_names(text, [](std::string_view field) { return "<" + std::string(field) + ">"; });
  };
  EXPECT_EQ(loud("at most {max_model_len}, or {top_k2}"), "at most <max_model_len>, or <top_k2>");
  EXPECT_EQ(loud("{{known}}"), "{<known>}");
  EXPECT_EQ(loud("${output_dir}/{known}"), "${output_dir}/<known>");
  for (const char* typed : {"{model}", "a{model}{model}", "\\{model}", "{{model}}", "{a b}{model"}) {
    const std::string named = loud("{known}: " + printable(typed));
    EXPECT_EQ(without_literal_marks(named), "<known>: " + std::string(typed)) << "what a user wrote";
    EXPECT_EQ(loud(named), named) << "it keeps its mark until the sentence is shown";
    EXPECT_EQ(message({.source = "f", .path = printable(typed), .value = printable(typed)}),
              "f: " + std::string(typed) + " = " + typed);
    EXPECT_EQ(without_literal_marks(loud(InputError({.value = printable(typed)}).sentence())), typed);
  }
  for (const char* other :
       {"", "{", "}", "{}", "{a}", "{K}", "{2x}", "{_a}", "{a b}", "{\"k\": 1}", "${HOME}", "${output_dir}", "{open"}) {
    EXPECT_EQ(loud(other), other);
  }
}

TEST(Error, a_broken_law_is_an_internal_error_with_its_reason) {
  EXPECT_NO_THROW(ensure(true, "fine"));
  try {
    ensure(false, "blocks free + used = total");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "blocks free + used = total");
  }
}

TEST(NearestName, finds_a_typo_whatever_the_case) {
  const std::vector<std::string> names = {"bandwidth", "capacity", "Memory"};
  EXPECT_EQ(nearest_name("bandwith", names), "bandwidth");
  EXPECT_EQ(nearest_name("CAPACITY", names), "capacity");
  EXPECT_EQ(nearest_name("mmeory", names), "Memory");
  EXPECT_EQ(nearest_name("eagel3", std::vector<std::string>{"eagle", "eagle3"}), "eagle3");
}

TEST(NearestName, prefers_a_name_that_contains_what_was_typed) {
  const std::vector<std::string> devices = {"a100", "h100_sxm", "h100_pcie", "h200"};
  EXPECT_EQ(nearest_name("H100", devices), "h100_sxm");
  const std::vector<std::string> models = {"meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"};
  EXPECT_EQ(nearest_name("llama-3.1-8b", models), "meta-llama/Llama-3.1-8B");
}

TEST(NearestName, suggests_nothing_for_something_else) {
  const std::vector<std::string> names = {"tp", "pp", "device"};
  EXPECT_EQ(nearest_name("xy", names), std::nullopt);
  EXPECT_EQ(nearest_name("quantization", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name("tp", {}), std::nullopt);
  EXPECT_EQ(nearest_name("tq", names), "tp");
  EXPECT_EQ(nearest_name("nope", std::vector<std::string>{"rome"}), std::nullopt) << "half of the word is another";
  EXPECT_EQ(nearest_name("rmoe", std::vector<std::string>{"rome"}), "rome");
}

TEST(NearestName, does_not_spend_time_on_absurdly_long_names) {
  const std::vector<std::string> names = {std::string(5'000'000, 'a'), "b"};
  EXPECT_EQ(nearest_name(std::string(5'000'000, 'a'), names), std::nullopt);
  EXPECT_EQ(nearest_name("a", names), "b");
}

TEST(Printable, escapes_what_a_terminal_should_not_see) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(Printable, cuts_long_text_between_characters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable("ab\xc3\xbc", 3), "ab...");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 63u);
}

}  // namespace foretoken::error_test
