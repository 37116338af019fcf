#include "training/import/toml.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::toml_test {

const YamlNode& at(const YamlNode& node, std::string_view key) {
  const YamlNode* found = node.find(key);
  EXPECT_NE(found, nullptr) << key;
  static const YamlNode none;
  return found == nullptr ? none : *found;
}

TEST(Toml, tables_keys_and_values_keep_their_lines) {
  const YamlNode root = parse_toml(R"(# a comment
title = "a \"b\""   # another
[training]
local_batch_size = 1_024
seq_len = 8192
"quoted key" = 'as \it is'
[training.inner]
on = true
[a.b]
c.d = 3.5
)",
                                   "x.toml");
  EXPECT_EQ(at(root, "title").scalar, "a \"b\"");
  EXPECT_TRUE(at(root, "title").quoted);
  EXPECT_EQ(at(at(root, "training"), "local_batch_size").scalar, "1_024");
  EXPECT_EQ(at(at(root, "training"), "seq_len").line, 5);
  EXPECT_EQ(at(at(root, "training"), "quoted key").scalar, "as \\it is");
  EXPECT_EQ(at(at(at(root, "training"), "inner"), "on").scalar, "true");
  EXPECT_EQ(at(at(at(at(root, "a"), "b"), "c"), "d").scalar, "3.5");
}

TEST(Toml, lists_run_over_lines_and_tables_may_be_listed) {
  const YamlNode root =
      parse_toml("x = [\n  \"a\", # one\n  'b',\n]\ny = { k = 1, l.m = [2, [3]] }\n[[t]]\nn = 1\n[[t]]\nn = 2\n", "x");
  ASSERT_EQ(at(root, "x").items.size(), 2u);
  EXPECT_EQ(at(root, "x").items[1].scalar, "b");
  EXPECT_EQ(at(at(at(root, "y"), "l"), "m").items[1].items[0].scalar, "3");
  ASSERT_EQ(at(root, "t").items.size(), 2u);
  EXPECT_EQ(at(at(root, "t").items[1], "n").scalar, "2");
}

TEST(Toml, texts_of_several_lines) {
  const YamlNode root = parse_toml("a = \"\"\"\none\n two\"\"\"\nb = '''x\ny'''\nc = 1\n", "x");
  EXPECT_EQ(at(root, "a").scalar, "one\n two");
  EXPECT_EQ(at(root, "b").scalar, "x\ny");
  EXPECT_EQ(at(root, "c").line, 6);
}

TEST(Toml, what_is_not_toml_names_its_line) {
  const auto line_of = [](const std::string& text) {
    try {
      parse_toml(text, "x");
    } catch (const InputError& error) {
      return error.problem().line;
    }
    return 0;
  };
  EXPECT_EQ(line_of("a = 1\na = 2\n"), 2);
  EXPECT_EQ(line_of("a = 1\n\nb = \"open\n"), 3);
  EXPECT_EQ(line_of("a = 1 b = 2\n"), 1);
  EXPECT_EQ(line_of("[a\n"), 1);
  EXPECT_EQ(line_of("a = [1, 2\n"), 2);
  EXPECT_EQ(line_of("a = 1\n[a.b]\nc = 2\n"), 2);
  EXPECT_EQ(line_of("x = " + std::string(100, '[')), 1);
}

TEST(Toml, is_told_from_yaml_by_its_first_line) {
  EXPECT_TRUE(looks_like_toml("# note\n\n[job]\nx = 1\n"));
  EXPECT_TRUE(looks_like_toml("title = 3"));
  EXPECT_FALSE(looks_like_toml("base_model: a = b\n"));
  EXPECT_FALSE(looks_like_toml("- [a]\n"));
  EXPECT_FALSE(looks_like_toml(""));
}

}  // namespace foretoken::toml_test
