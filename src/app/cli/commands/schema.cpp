#include "app/cli/grammar/schema.h"

#include "app/cli/commands/list.h"
#include "app/cli/grammar/command_line.h"
#include "base/error.h"

namespace foretoken {
namespace {

class SchemaCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("name", name_, "Command to print; without it, all commands");
    options.text("subcommand", subcommand_, "Subcommand to print; without it, all of them");
    options.footer(
        "Examples:\n"
        "  foretoken schema serve\n"
        "  foretoken schema plan serve\n"
        "  foretoken schema > foretoken.schema.json");
  }

  Answer run(const Library& /*library*/) const override {
    std::vector<CommandDeclaration> commands;
    std::vector<std::string> names;
    for (const CommandKind& kind : all_commands()) {
      names.emplace_back(kind.name);
      if (name_.empty() || name_ == kind.name) commands.push_back(declaration_of(kind));
    }
    if (commands.empty()) fail("foretoken schema", name_, names);
    const Json schema = name_.empty() ? questions_schema(commands) : schema_of(commands.front());
    return {.text = schema.dump() + "\n", .json = schema};
  }

 private:
  [[noreturn]] static void fail(const std::string& source, const std::string& name,
                                const std::vector<std::string>& known) {
    throw InputError({.source = source,
                      .value = printable(name),
                      .expected = "a command (see foretoken --help)",
                      .suggestion = nearest_name(name, known).value_or("")});
  }

  Json schema_of(const CommandDeclaration& command) const {
    if (subcommand_.empty()) {
      return command.subcommands.empty() ? question_schema(command) : questions_schema({&command, 1});
    }
    const CommandDeclaration* chosen = find_command(command.subcommands, subcommand_);
    if (chosen == nullptr) {
      std::vector<std::string> names;
      for (const CommandDeclaration& child : command.subcommands) names.push_back(child.name);
      fail("foretoken schema " + command.name, subcommand_, names);
    }
    const CommandDeclaration* const above[] = {&command};
    return question_schema(*chosen, above);
  }

  std::string name_, subcommand_;
};

}  // namespace

std::unique_ptr<Command> make_schema() {
  return std::make_unique<SchemaCommand>();
}

}  // namespace foretoken
