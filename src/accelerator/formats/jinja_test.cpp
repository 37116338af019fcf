#include "accelerator/formats/jinja.h"

#include <gtest/gtest.h>

#include "accelerator/formats/timeloop_files.h"
#include "base/error.h"
#include "base/file.h"

namespace foretoken::jinja_test {

std::string expanded(std::string_view text, const JinjaVariables& variables = {}) {
  return expand_jinja(text, "text", variables);
}

InputProblem jinja_complaint(std::string_view text) {
  try {
    expanded(text);
    return {};
  } catch (const InputError& error) {
    return error.problem();
  }
}

class JinjaFiles : public testing::Test {
 protected:
  JinjaFiles() : folder_(std::filesystem::path(testing::TempDir()) / "jinja_files") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "parts");
  }
  void write(const std::string& name, const std::string& text) const { write_file(folder_ / name, text); }
  std::string expand(const std::string& name, const JinjaVariables& variables = {}) const {
    return expand_jinja_file(folder_ / name, variables);
  }

  std::filesystem::path folder_;
};

TEST(Jinja, variables_have_values_or_defaults) {
  EXPECT_EQ(expanded("bits: {{ bits }}", {{"bits", "8"}}), "bits: 8");
  EXPECT_EQ(expanded("bits: {{bits|default(16)}} # {# gone #}", {}), "bits: 16 # ");
  EXPECT_EQ(expanded("{% set a = 'x' ~ b | default('y') ~ 1 %}{{ a }}"), "xy1");
  EXPECT_FALSE(has_jinja("a: {b: {c: 1}}"));
  EXPECT_TRUE(has_jinja("a: {{ b }}"));
}

TEST(Jinja, conditions_choose_one_branch) {
  const std::string text = "{% if a == 'one' %}1{% elif a == 'two' %}2{% else %}3{% endif %}";
  EXPECT_EQ(expanded(text, {{"a", "one"}}), "1");
  EXPECT_EQ(expanded(text, {{"a", "two"}}), "2");
  EXPECT_EQ(expanded(text), "3");
  EXPECT_EQ(expanded("{% if not a %}{% if b | default(True) %}x{% endif %}{% endif %}"), "x");
  EXPECT_EQ(expanded("{% if False %}{% set a = 1 %}{{ nobody }}{% endif %}{{ a | default(2) }}"), "2");
}

TEST(Jinja, what_is_not_supported_is_named_with_its_line) {
  EXPECT_EQ(jinja_complaint("a: 1\nb: {{ c }}").line, 2);
  EXPECT_EQ(jinja_complaint("{% for a in b %}").value, "for a in b");
  EXPECT_NE(jinja_complaint("{{ a | upper }}").expected.find("default"), std::string::npos);
  EXPECT_NE(jinja_complaint("{{ include('a', 'b') }}").expected.find("of no file"), std::string::npos);
  for (const char* broken : {"{{ a", "{% if a %}", "{% endif %}", "{{ 'a }}", "{{ a b }}", "{% set = 1 %}", "{{ (a }}",
                             "{% else %}", "{{ }}", "{{ 'a' ~ b }}"}) {
    EXPECT_FALSE(jinja_complaint(broken).expected.empty()) << broken;
  }
  EXPECT_THROW(jinja_variables(std::vector<std::string>{"=1"}), InputError);
  EXPECT_EQ(jinja_variables(std::vector<std::string>{"a=b=c"}).at("a"), "b=c");
}

TEST_F(JinjaFiles, include_sections_texts_and_lists_of_other_files) {
  write("parts/arch.yaml", "architecture: {nodes: [!Container {name: {{ chip }}}]}\n");
  write("parts/one.yaml", "classes: [{name: one}]\n");
  write("parts/two.yaml", "classes: [{name: two}]\n");
  write("parts/text.yaml", "plain: text\n");
  write("top.yaml", R"({{ add_to_path(cwd() ~ '/parts') }}
{% if path_exists('arch.yaml') %}architecture: {{ include('arch.yaml', 'architecture') }}{% endif %}
classes: {{ include_all('parts/*.yaml', 'classes') if_none }}
)");
  EXPECT_THROW(expand("top.yaml", {{"chip", "small"}}), InputError);  // `if_none` follows the expression
  write("top.yaml", R"({{ add_to_path('parts') }}
{% if path_exists('arch.yaml') %}architecture: {{ include('arch.yaml', 'architecture') }}{% endif %}
nodes: {{ include('parts/arch.yaml', 'architecture.nodes') }}
all: {{ include_all('o*.yaml', 'classes') }}
{{ include_text('text.yaml') }})");
  EXPECT_EQ(expand("top.yaml", {{"chip", "small"}}),
            "\narchitecture: {\"nodes\":[{\"!\":\"Container\",\"name\":\"small\"}]}\n"
            "nodes: [{\"!\":\"Container\",\"name\":\"small\"}]\nall: [{\"name\":\"one\"}]\nplain: text\n");
}

TEST(Jinja, expressions_of_any_depth_and_texts_of_any_length_are_refused) {
  std::string nots, doublings = "{% set a = 'sixteen letters.' %}";
  for (int i = 0; i < 1'000'000; ++i) nots += "not ";
  EXPECT_NE(jinja_complaint("{% if " + nots + "a %}{% endif %}").expected.find("shorter"), std::string::npos);
  for (int i = 0; i < 60; ++i) doublings += "{% set a = a ~ a %}";
  EXPECT_NE(jinja_complaint(doublings).expected.find("bytes"), std::string::npos);
  std::string many = "{% set a = '" + std::string(100'000, 'x') + "' %}";
  for (int i = 0; i < 100; ++i) many += "{% set a" + std::to_string(i) + " = a %}";
  EXPECT_NE(jinja_complaint(many).expected.find("bytes"), std::string::npos);
  EXPECT_EQ(expanded("{% if not not a %}x{% endif %}", {{"a", "1"}}), "x");
}

TEST_F(JinjaFiles, that_include_each_other_over_and_over_are_refused) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += "{{ include_text('over.yaml') }}";
  write("over.yaml", text);
  EXPECT_THROW(expand("over.yaml"), InputError);
  write("leaf.yaml", "");
  std::string wide;
  for (int i = 0; i < 1001; ++i) wide += "{{ include_text('leaf.yaml') }}";
  write("wide.yaml", wide);
  EXPECT_THROW(expand("wide.yaml"), InputError);
}

TEST_F(JinjaFiles, patterns_with_many_stars_match_at_once) {
  write("parts/star_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.yaml", "classes: [{name: star}]\n");
  const std::string found = "[{\"name\":\"star\"}]";
  write("stars.yaml", "{{ include_all('parts/*tar*a*a*.yaml', 'classes') }}");
  EXPECT_EQ(expand("stars.yaml"), found);
  write("stars.yaml", "{{ include_all('parts/s*a*a*a*a*a*a*a*a*a*a*a*a*b*.yaml', 'classes') }}");
  EXPECT_EQ(expand("stars.yaml"), "[]");
}

TEST_F(JinjaFiles, that_include_themselves_or_nobody_are_refused) {
  write("self.yaml", "{{ include_text('self.yaml') }}");
  EXPECT_THROW(expand("self.yaml"), InputError);
  write("lost.yaml", "{{ include_text('nowhere.yaml') }}");
  EXPECT_THROW(expand("lost.yaml"), InputError);
}

TEST_F(JinjaFiles, make_one_design_of_templates) {
  write("parts/design.yaml", R"(
architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: 45nm}}
  - !Component {name: Memory, class: DRAM, attributes: {width: 64, datawidth: {{ bits | default(8) }}}}
  - !Component {name: mac, class: {{ mac }}}
)");
  write("design.yaml.jinja2", "architecture: {{ include('parts/design.yaml', 'architecture') }}\n");
  const std::vector<std::filesystem::path> paths = {folder_ / "design.yaml.jinja2"};
  const AcceleratorInputs inputs = read_timeloop_files(paths, {}, {{"mac", "intmac"}, {"bits", "16"}});
  ASSERT_EQ(inputs.architecture->levels.size(), 2u);
  EXPECT_EQ(inputs.architecture->levels[0].word_bits, 16);
  EXPECT_THROW(read_timeloop_files(paths), InputError);
}

}  // namespace foretoken::jinja_test
