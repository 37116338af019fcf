#include "app/cli/grammar/manual.h"

#include <fmt/format.h>

namespace foretoken {
namespace {

// Text of a line that man sets as it is. A dot or quote at its start would be an instruction; a plain - may become a
// hyphen, which nobody can paste into a shell.
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char letter : text) {
    if (line_start && (letter == '.' || letter == '\'')) out += "\\&";
    switch (letter) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      default:
        out += letter;
    }
    line_start = letter == '\n';
  }
  return out;
}

std::string value_word(FlagKind kind) {
  switch (kind) {
    case FlagKind::flag:
      return "";
    case FlagKind::list:
      return "A,B,...";
    case FlagKind::integer:
    case FlagKind::number:
      return "N";
    case FlagKind::text:
    case FlagKind::texts:
    case FlagKind::choice:
      return "VALUE";
  }
  return "";
}

std::string flag_entry(const FlagDeclaration& flag) {
  std::string names;
  for (const std::string& name : flag.names)
    names += (names.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff(name));
  const std::string value = flag.is_positional() ? "" : value_word(flag.kind);
  if (!value.empty()) names += fmt::format(" \\fI{}\\fR", value);
  std::string text = flag.help;
  if (!flag.choices.empty()) text += fmt::format(": {}", fmt::join(flag.choices, ", "));
  if (flag.required) text += " (required)";
  if (!flag.fallback.empty()) text += fmt::format(" [{}]", flag.fallback);
  return fmt::format(".TP\n{}\n{}\n", names, roff(text));
}

std::string command_section(const CommandDeclaration& command, const std::string& path) {
  const std::string whole = path + " " + command.name;
  std::string page = fmt::format(".SS \"{}\"\n{}.\n", roff(whole), roff(command.summary));
  std::string heading = "Options";  // that of flags below no heading of their own
  for (const FlagDeclaration& flag : command.flags) {
    if (flag.heading != heading) page += fmt::format(".PP\n\\fI{}\\fR\n", roff(flag.heading));
    heading = flag.heading;
    page += flag_entry(flag);
  }
  if (!command.footer.empty()) page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.footer));
  for (const CommandDeclaration& subcommand : command.subcommands) page += command_section(subcommand, whole);
  return page;
}

}  // namespace

std::string manual_page(std::span<const CommandDeclaration> commands, const std::string& version) {
  std::string page = fmt::format(".TH FORETOKEN 1 \"\" \"foretoken {}\" \"User Commands\"\n", version);
  page +=
      ".SH NAME\nforetoken \\- predict time, memory, energy and cost of ML workloads\n"
      ".SH SYNOPSIS\n.B foretoken\n.I COMMAND\n[\\fIflags\\fR] [\\fB\\-\\-spec\\fR \\fIFILE\\fR] [\\fB\\-\\-json\\fR | "
      "\\fB\\-\\-print\\-spec\\fR]\n.br\n"
      ".B foretoken\n[\\fICOMMAND\\fR] \\fB\\-\\-help\\fR\n.br\n.B foretoken \\-\\-version\n";
  page += fmt::format(".SH DESCRIPTION\n{}\n.PP\n{}\n", roff(program_about), roff(program_notes));
  page +=
      ".PP\nSizes take suffixes: 4k is 4,000 and 4K is 4,096. A flag that is on or off also exists as "
      "\\fB\\-\\-no\\-\\fIname\\fR.\n";
  page += ".SH COMMANDS\n";
  for (const CommandDeclaration& command : commands) page += command_section(command, "foretoken");
  page +=
      ".SH ENVIRONMENT\n.TP\n.B FORETOKEN_LIBRARY\nThe folder of devices, models and fitted coefficients; by default "
      "the one installed with the program.\n";
  return page;
}

}  // namespace foretoken
