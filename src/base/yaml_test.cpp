#include "base/yaml.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::yaml_test {

YamlNode parse(std::string_view text, const YamlLimits& limits = {}) {
  return parse_yaml(text, "config.yaml", limits);
}

InputProblem complaint(std::string_view text, const YamlLimits& limits = {}) {
  try {
    parse(text, limits);
    return {};
  } catch (const InputError& error) {
    return error.problem();
  }
}

TEST(Yaml, a_tree_remembers_its_lines_and_quotes) {
  const YamlNode root = parse("a: 1\nb:\n  c: 'true'\n  d: [x, ~]\n");
  ASSERT_EQ(root.kind, YamlNode::Kind::map);
  EXPECT_EQ(root.find("a")->scalar, "1");
  EXPECT_FALSE(root.find("a")->quoted);
  const YamlNode* inner = root.find("b");
  ASSERT_NE(inner, nullptr);
  EXPECT_TRUE(inner->find("c")->quoted);
  EXPECT_EQ(inner->find("c")->line, 3);
  ASSERT_EQ(inner->find("d")->items.size(), 2);
  EXPECT_EQ(inner->find("d")->items[1].kind, YamlNode::Kind::null);
  EXPECT_EQ(root.find("e"), nullptr);
}

TEST(Yaml, a_tag_is_kept_without_its_mark) {
  const YamlNode root = parse("- !Part {x: 1}\n- 'quoted'\n- plain\n- !List [1]\n- !Word w\n");
  EXPECT_EQ(root.items[0].tag, "Part");
  EXPECT_EQ(root.items[1].tag, "");
  EXPECT_EQ(root.items[2].tag, "");
  EXPECT_EQ(root.items[3].tag, "List");
  EXPECT_EQ(root.items[4].tag, "Word");
}

TEST(Yaml, an_empty_text_is_null_and_only_the_first_document_counts) {
  EXPECT_EQ(parse("").kind, YamlNode::Kind::null);
  EXPECT_EQ(parse("# nothing\n").kind, YamlNode::Kind::null);
  EXPECT_EQ(parse("a: 1\n---\nb: 2\n").find("b"), nullptr);
}

TEST(Yaml, an_alias_is_a_copy) {
  const YamlNode root = parse("base: &b {x: 1}\nuse: *b\n");
  EXPECT_EQ(root.find("use")->find("x")->scalar, "1");
}

TEST(Yaml, aliases_cannot_grow_without_bound) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 12; ++level) {
    const std::string previous = "*a" + std::to_string(level - 1);
    bomb += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
    for (int copy = 0; copy < 10; ++copy) bomb += (copy > 0 ? ", " : "") + previous;
    bomb += "]\n";
  }
  EXPECT_NE(complaint(bomb).expected.find("aliases included"), std::string::npos);
  EXPECT_NE(complaint("a: &a [[x]]\nb: [[*a]]\n", {.max_depth = 4}).expected.find("nesting"), std::string::npos);
  EXPECT_TRUE(complaint("a: &a [[x]]\nb: [*a]\n", {.max_depth = 5}).expected.empty());
}

TEST(Yaml, what_is_wrong_is_said_with_its_line) {
  EXPECT_EQ(complaint("a: 1\nb: [1, 2\n").source, "config.yaml");
  EXPECT_GE(complaint("a: 1\nb: [1, 2\n").line, 2);
  EXPECT_EQ(complaint("a: 1\na: 2\n").line, 2);
  EXPECT_EQ(complaint("a: 1\na: 2\n").value, "a");
  EXPECT_EQ(complaint("? [a, b]\n: 1\n").expected, "a key that is a plain value");
  EXPECT_EQ(complaint("a: \"\xff\"\n").expected, "text in UTF-8");
  EXPECT_NE(complaint(std::string(100, '[') + std::string(100, ']')).expected.find("nesting"), std::string::npos);
  EXPECT_FALSE(complaint(std::string(100'000, '[')).expected.empty());
  EXPECT_NE(complaint("abcdef", {.max_bytes = 5}).expected.find("at most 5 bytes"), std::string::npos);
}

}  // namespace foretoken::yaml_test
