#include "base/yaml_json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::yaml_json_test {

Json converted(std::string_view text) {
  return json_of_yaml(parse_yaml(text, "part.yaml"), "part.yaml");
}

TEST(YamlJson, scalars_take_the_type_they_look_like_unless_quoted) {
  const Json json = converted("{i: 16, f: 1e-9, b: true, n: ~, t: N, q: '16', e: 2*8}");
  EXPECT_EQ(json.find("i")->kind(), Json::Kind::integer);
  EXPECT_EQ(json.find("f")->number(), 1e-9);
  EXPECT_TRUE(json.find("b")->boolean());
  EXPECT_EQ(json.find("n")->kind(), Json::Kind::null);
  EXPECT_EQ(json.find("t")->string(), "N");
  EXPECT_EQ(json.find("q")->string(), "16");
  EXPECT_EQ(json.find("e")->string(), "2*8");
}

TEST(YamlJson, tags_and_lines_are_kept) {
  const Json json = converted("nodes:\n- !Component\n  name: x\n");
  const Json& node = json.find("nodes")->items()[0];
  EXPECT_EQ(node.find(yaml_tag_key)->string(), "Component");
  EXPECT_EQ(node.find("name")->line(), 3);
}

TEST(YamlJson, what_a_map_says_itself_wins_over_what_it_merges) {
  const Json json = converted("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n");
  EXPECT_EQ(json.find("use")->find("x")->integer(), 1);
  EXPECT_EQ(json.find("use")->find("y")->integer(), 3);
  EXPECT_EQ(json.find("both")->find("z")->integer(), 4);
  EXPECT_THROW(converted("use: {<<: 3}"), InputError);
}

}  // namespace foretoken::yaml_json_test
