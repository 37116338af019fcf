#include "app/cli/grammar/declarations.h"

#include <algorithm>

#include "base/error.h"
#include "base/field_braces.h"

namespace foretoken {

std::string_view flag_kind_name(FlagKind kind) {
  switch (kind) {
    case FlagKind::flag:
      return "flag";
    case FlagKind::text:
      return "text";
    case FlagKind::list:
      return "list";
    case FlagKind::texts:
      return "texts";
    case FlagKind::integer:
      return "integer";
    case FlagKind::number:
      return "number";
    case FlagKind::choice:
      return "choice";
  }
  return "";
}

std::string field_name(std::string_view flag) {
  std::string name(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string flag_name(std::string_view field) {
  std::string name = "--" + std::string(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string with_flag_names(std::string_view text) {
  return without_literal_marks(with_field_names(text, flag_name));
}

void name_flags(Json& json) {
  json.change_texts([](std::string& text) {
    if (text.find('{') != std::string::npos) text = with_flag_names(text);
  });
}

const FlagDeclaration* find_flag(const CommandDeclaration& command, std::string_view name) {
  for (const FlagDeclaration& flag : command.flags) {
    if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return &flag;
  }
  return nullptr;
}

const CommandDeclaration* find_command(std::span<const CommandDeclaration> commands, std::string_view name) {
  for (const CommandDeclaration& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

Json declaration_json(const CommandDeclaration& command) {
  Json flags = Json::array(), subcommands = Json::array();
  for (const FlagDeclaration& flag : command.flags) {
    Json names = Json::array(), choices = Json::array();
    for (const std::string& name : flag.names) names.push(name);
    for (const std::string& choice : flag.choices) choices.push(choice);
    flags.push(Json::object({{"names", names},
                             {"kind", flag_kind_name(flag.kind)},
                             {"help", flag.help},
                             {"default", flag.fallback},
                             {"choices", choices},
                             {"heading", flag.heading},
                             {"required", flag.required}}));
  }
  for (const CommandDeclaration& subcommand : command.subcommands) subcommands.push(declaration_json(subcommand));
  return Json::object({{"name", command.name},
                       {"summary", command.summary},
                       {"flags", flags},
                       {"subcommands", subcommands},
                       {"notes", command.footer}});
}

}  // namespace foretoken
