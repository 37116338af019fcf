#include "app/cli/commands/list.h"
#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/manual.h"
#include "base/error.h"

namespace foretoken {
namespace {

class ManCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("name", command_, "Command to print; without it, all commands");
    options.footer(
        "Examples:\n"
        "  foretoken man > foretoken.1\n"
        "  foretoken man serve --json");
  }

  Answer run(const Library& /*library*/) const override {
    std::vector<CommandDeclaration> commands;
    std::vector<std::string> names;
    for (const CommandKind& kind : all_commands()) {
      names.emplace_back(kind.name);
      if (command_.empty() || command_ == kind.name) commands.push_back(declaration_of(kind));
    }
    if (commands.empty()) {
      throw InputError({.source = "foretoken man",
                        .value = printable(command_),
                        .expected = "a command (see foretoken --help)",
                        .suggestion = nearest_name(command_, names).value_or("")});
    }
    Json json = Json::array();
    for (const CommandDeclaration& command : commands) json.push(declaration_json(command));
    return {.text = manual_page(commands, FORETOKEN_VERSION),
            .json = Json::object({{"version", FORETOKEN_VERSION}, {"commands", json}})};
  }

 private:
  std::string command_;
};

}  // namespace

std::unique_ptr<Command> make_man() {
  return std::make_unique<ManCommand>();
}

}  // namespace foretoken
