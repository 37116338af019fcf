#include "app/cli/grammar/schema.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "compose/engine_release.h"

namespace foretoken {
namespace {

// Commands take choices and engines in any case; listing every spelling would hide them.
constexpr const char* case_remark = "Write choices and engine names in the case shown here.";
constexpr const char* dialect = "https://json-schema.org/draft/2020-12/schema";

Json names_json(std::initializer_list<const char*> names) {
  Json list = Json::array();
  for (const char* name : names) list.push(name);
  return list;
}

// As parse_number reads it; with the suffixes of parse_scaled_number and parse_usd_per_hour.
constexpr std::string_view number_pattern = R"([+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?)";

std::string pattern_of(const FlagDeclaration& flag) {
  if (flag.kind == FlagKind::integer) return fmt::format("^{}[kmgtKMGT]?$", number_pattern);
  if (!flag.is_money) return fmt::format("^{}$", number_pattern);
  return fmt::format("^[$]?{}[kKmM]?(/[hH]([rR]|[oO][uU][rR])?)?$", number_pattern);
}

// null is as if the field were not there.
Json types_json(const FlagDeclaration& flag, std::initializer_list<const char*> names) {
  Json types = names_json(names);
  if (!flag.required) types.push("null");
  return types;
}

void set_choices(Json& property, const FlagDeclaration& flag) {
  Json choices = Json::array();
  for (const std::string& choice : flag.choices) {
    choices.push(choice);
    // A question in JSON may have it as a number.
    const std::optional<int64_t> whole = parse_integer(choice);
    if (whole && fmt::format("{}", *whole) == choice) choices.push(*whole);
  }
  if (!flag.required) choices.push(Json());
  if (flag.release_families.empty()) {
    property.set("enum", std::move(choices));
    return;
  }
  const std::string releases = release_pattern(flag.release_families);
  property.set("anyOf", Json::array({Json::object({{"enum", std::move(choices)}}),
                                     Json::object({{"type", "string"}, {"pattern", releases}})}));
}

// Types as field_texts takes them: a number may be written as the flag takes it ("4K", "$2.5").
void set_type(Json& property, const FlagDeclaration& flag) {
  switch (flag.kind) {
    case FlagKind::flag:
      property.set("type", types_json(flag, {"boolean"}));
      return;
    case FlagKind::integer:
      property.set("type", types_json(flag, {"integer", "string"}));
      property.set("pattern", pattern_of(flag));
      return;
    case FlagKind::number:
      property.set("type", types_json(flag, {"number", "string"}));
      property.set("pattern", pattern_of(flag));
      return;
    case FlagKind::choice:
      return set_choices(property, flag);
    case FlagKind::text:
    case FlagKind::list:
    case FlagKind::texts:
      break;
  }
  const bool takes_many = flag.kind != FlagKind::text || !flag.takes_settings;
  Json types = names_json({"string"});
  if (!flag.takes_settings) types.push("number");
  types.push("object");
  if (takes_many) property.set("items", Json::object({{"type", types}}));
  if (takes_many) types.push("array");
  if (!flag.required) types.push("null");
  property.set("type", std::move(types));
}

Json property_of(const FlagDeclaration& flag) {
  Json property = Json::object({{"description", flag.help}});
  set_type(property, flag);
  if (flag.least.kind() != Json::Kind::null) property.set("minimum", flag.least);
  if (flag.most.kind() != Json::Kind::null) property.set("maximum", flag.most);
  if (flag.usual.kind() != Json::Kind::null) property.set("default", flag.usual);
  return property;
}

// `place`: of the schema in its document, for references.
Json schema_at(const std::string& place, const CommandDeclaration& command,
               std::span<const CommandDeclaration* const> above) {
  std::string name;
  for (const CommandDeclaration* parent : above) name += parent->name + " ";
  name += command.name;
  std::vector<const CommandDeclaration*> levels(above.begin(), above.end());
  levels.push_back(&command);
  Json properties = Json::object({{"command", Json::object({{"const", name}})}});
  Json required = names_json({"command"}), conditions = Json::array();
  std::set<std::string> known;
  // Flags of a subcommand come before those of its command with the same name.
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    for (const FlagDeclaration& flag : (*level)->flags) {
      const std::string field = field_name(flag.names.front());
      if (!known.insert(field).second) continue;
      properties.set(field, property_of(flag));
      Json any = Json::array({Json::object({{"required", Json::array({field})}})});
      for (size_t i = 1; i < flag.names.size(); ++i) {
        const std::string alias = field_name(flag.names[i]);
        if (!known.insert(alias).second) continue;
        properties.set(alias, Json::object({{"$ref", fmt::format("{}/properties/{}", place, field)}}));
        any.push(Json::object({{"required", Json::array({alias})}}));
        // A field has one of its names.
        for (size_t j = 0; j < i; ++j) {
          Json both = Json::array({field_name(flag.names[j]), alias});
          conditions.push(Json::object({{"not", Json::object({{"required", std::move(both)}})}}));
        }
      }
      if (!flag.required) continue;
      if (flag.names.size() == 1) {
        required.push(field);
      } else {
        conditions.push(Json::object({{"anyOf", std::move(any)}}));
      }
    }
  }
  Json schema = Json::object({{"title", "foretoken " + name},
                              {"description", fmt::format("{}. {}", command.summary, case_remark)},
                              {"type", "object"},
                              {"properties", std::move(properties)},
                              {"required", std::move(required)}});
  if (!conditions.items().empty()) schema.set("allOf", std::move(conditions));
  schema.set("additionalProperties", false);
  return schema;
}

struct Asked {
  const CommandDeclaration* command = nullptr;
  std::vector<const CommandDeclaration*> above;
  std::string name;  // "plan_serve"
};

void list_questions(const CommandDeclaration& command, std::vector<const CommandDeclaration*> above,
                    std::vector<Asked>& all) {
  std::string name;
  for (const CommandDeclaration* parent : above) name += parent->name + "_";
  if (!command.needs_subcommand) all.push_back({.command = &command, .above = above, .name = name + command.name});
  above.push_back(&command);
  for (const CommandDeclaration& child : command.subcommands) list_questions(child, above, all);
}

}  // namespace

Json question_schema(const CommandDeclaration& command, std::span<const CommandDeclaration* const> above) {
  Json schema = Json::object({{"$schema", dialect}});
  const Json rest = schema_at("#", command, above);
  for (const auto& [key, value] : rest.members()) schema.set(key, value);
  return schema;
}

Json questions_schema(std::span<const CommandDeclaration> commands) {
  std::vector<Asked> all;
  for (const CommandDeclaration& command : commands) list_questions(command, {}, all);
  Json choices = Json::array(), definitions = Json::object();
  for (const Asked& one : all) {
    const std::string place = "#/$defs/" + one.name;
    choices.push(Json::object({{"$ref", place}}));
    definitions.set(one.name, schema_at(place, *one.command, one.above));
  }
  return Json::object({{"$schema", dialect},
                       {"title", "foretoken"},
                       {"description", "A question to foretoken"},
                       {"oneOf", std::move(choices)},
                       {"$defs", std::move(definitions)}});
}

}  // namespace foretoken
