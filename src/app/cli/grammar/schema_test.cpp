#include "app/cli/grammar/schema.h"

#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/question.h"
#include "base/error.h"

namespace foretoken::schema_test {

Json schema_of(const std::string& name) {
  for (const CommandKind& kind : all_commands()) {
    if (kind.name == name) return question_schema(declaration_of(kind));
  }
  throw std::logic_error("no such command");
}

TEST(QuestionSchema, says_what_a_flag_declares) {
  const Json schema = schema_of("serve");
  const JsonView view(schema, "schema");
  EXPECT_EQ(view.at("$schema").string(), "https://json-schema.org/draft/2020-12/schema");
  EXPECT_FALSE(view.at("additionalProperties").boolean());
  const JsonView fields = view.at("properties");
  EXPECT_EQ(fields.at("command").at("const").string(), "serve");
  EXPECT_EQ(fields.at("tensor_parallel_size").at("minimum").integer(), 1);
  EXPECT_EQ(fields.at("tensor_parallel_size").at("default").integer(), 1);
  EXPECT_EQ(fields.at("tensor_parallel_size").at("type").items().front().string(), "integer");
  EXPECT_EQ(fields.at("energy").at("type").value().dump(0), R"(["boolean","null"])");
  EXPECT_FALSE(fields.at("energy").at("default").boolean());
  EXPECT_TRUE(fields.at("intervals").at("default").boolean());
  EXPECT_GT(fields.at("decode_router").at("enum").items().size(), 2U);
  EXPECT_FALSE(fields.at("model").at("description").string().empty());
  EXPECT_EQ(fields.at("tp").at("$ref").string(), "#/properties/tensor_parallel_size");
  std::set<std::string> required;
  for (const JsonView& name : view.at("required").items()) required.insert(name.string());
  EXPECT_TRUE(required.contains("command"));
  EXPECT_TRUE(required.contains("model"));
  EXPECT_FALSE(required.contains("num_prompts"));
}

TEST(QuestionSchema, says_what_the_reader_checks_of_names_and_sizes) {
  const Json schema = schema_of("serve");
  const JsonView view(schema, "schema");
  std::set<std::string> conditions;
  for (const JsonView& condition : view.at("allOf").items()) conditions.insert(condition.value().dump(0));
  EXPECT_TRUE(conditions.contains(R"({"not":{"required":["goodput","slo"]}})")) << "one name of a field";
  EXPECT_TRUE(conditions.contains(R"({"not":{"required":["tensor_parallel_size","tp"]}})"));
}

// Whether the pattern of the field takes the text, and whether the command does.
void expect_taken(const std::string& field, const std::string& text, bool taken) {
  const Json schema = schema_of("serve");
  const JsonView property = JsonView(schema, "schema").at("properties").at(field);
  const JsonView holder = property.has("anyOf") ? property.at("anyOf").items().back() : property;
  const std::regex pattern(holder.at("pattern").string(), std::regex::ECMAScript);
  EXPECT_EQ(std::regex_search(text, pattern), taken) << field << " " << text;
  const Json spec = Json::object({{"command", "serve"}, {"model", "m"}, {"device", "d"}, {field, text}});
  bool is_read = true;
  try {
    const Question question(spec, "question");
  } catch (const InputError&) {
    is_read = false;
  }
  EXPECT_EQ(is_read, taken) << field << " " << text;
}

TEST(QuestionSchema, takes_the_texts_that_the_command_takes) {
  for (const char* text : {"200", "4K", "+5", "1E3", "1e+3", "2.k"}) expect_taken("num_prompts", text, true);
  for (const char* text : {".", "", "4Q", "e3", "5 ", "--5", "$5", "1.2.3"}) expect_taken("num_prompts", text, false);
  for (const char* text : {"4", ".5", "1E1", "+2.5"}) expect_taken("burstiness", text, true);
  for (const char* text : {"$4", "4K", ".", "4/h"}) expect_taken("burstiness", text, false);
  for (const char* text : {"2.5", "$2.5", "$2.5/h", "2.5/Hour", "1k", "$2/hr"}) expect_taken("gpu_price", text, true);
  for (const char* text : {"$", "2.5/day", "2.5/", "EUR 2"}) expect_taken("gpu_price", text, false);
  for (const char* text : {"vllm-0.12", "sglang==0.5.9", "vllm-v0.10.2"}) expect_taken("engine", text, true);
  for (const char* text : {"vllm-nightly", "vlm-0.12", "vllm 0.12"}) expect_taken("engine", text, false);
}

TEST(QuestionSchema, says_that_names_are_written_in_the_case_shown) {
  const Json schema = schema_of("serve");
  EXPECT_THAT(schema.find("description")->string(), testing::HasSubstr("in the case shown here"));
  for (const char* engine : {"VLLM", "SGLang-0.5.9"}) {
    const Json spec = Json::object({{"command", "serve"}, {"model", "m"}, {"device", "d"}, {"engine", engine}});
    EXPECT_NO_THROW(Question(spec, "question")) << "the command itself takes any case";
  }
}

TEST(QuestionSchema, takes_null_for_what_may_be_left_out) {
  const Json schema = schema_of("serve");
  const JsonView fields = JsonView(schema, "schema").at("properties");
  const auto takes_null = [&](const char* field) {
    const JsonView property = fields.at(field);
    const JsonView holder = property.has("anyOf") ? property.at("anyOf").items().front() : property;
    bool found = false;
    for (const JsonView& one : holder.at(holder.has("enum") ? "enum" : "type").items()) {
      const Json& value = one.value();
      found = found || value.kind() == Json::Kind::null || (!holder.has("enum") && value.string() == "null");
    }
    return found;
  };
  for (const char* field :
       {"energy", "num_prompts", "request_rate", "engine", "decode_router", "prefill_pool", "goodput"})
    EXPECT_TRUE(takes_null(field)) << field;
  EXPECT_FALSE(takes_null("model")) << "it must be given";
}

// Whatever is required may be given under any of its names.
void check_required(const JsonView& schema, const CommandDeclaration& command) {
  std::set<std::string> required;
  for (const JsonView& name : schema.at("required").items()) required.insert(name.string());
  for (const FlagDeclaration& flag : command.flags) {
    EXPECT_EQ(required.contains(field_name(flag.names.front())), flag.required && flag.names.size() == 1)
        << flag.names.front();
  }
}

TEST(QuestionSchema, of_all_commands_has_every_field_once) {
  std::vector<CommandDeclaration> commands;
  for (const CommandKind& kind : all_commands()) commands.push_back(declaration_of(kind));
  const Json schema = questions_schema(commands);
  const JsonView definitions = JsonView(schema, "schema").at("$defs");
  EXPECT_EQ(definitions.members().size(), schema.find("oneOf")->items().size());
  for (const CommandDeclaration& command : commands) {
    std::set<std::string> names = {"command"};
    for (const FlagDeclaration& flag : command.flags) {
      for (const std::string& name : flag.names)
        EXPECT_TRUE(names.insert(field_name(name)).second) << command.name << " " << name;
    }
    if (!command.needs_subcommand) {
      const JsonView one = definitions.at(command.name);
      EXPECT_EQ(one.at("properties").members().size(), names.size()) << command.name;
      check_required(one, command);
    }
    for (const CommandDeclaration& child : command.subcommands) {
      const JsonView one = definitions.at(command.name + "_" + child.name);
      EXPECT_EQ(one.at("properties").at("command").at("const").string(), command.name + " " + child.name);
      for (const FlagDeclaration& flag : child.flags) {
        for (const std::string& name : flag.names) {
          EXPECT_NE(field_name(name), "command") << child.name;
          EXPECT_TRUE(one.at("properties").has(field_name(name))) << child.name << " " << name;
        }
      }
    }
  }
}

}  // namespace foretoken::schema_test
