#include "app/cli/grammar/completion.h"

#include <algorithm>
#include <optional>

#include "app/cli/grammar/command_line.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr std::string_view bash_script = R"(# Completes foretoken in bash: source it, or keep it as
# share/bash-completion/completions/foretoken.
_foretoken() {
  local IFS=' '
  mapfile -t COMPREPLY < <("$1" completions words --typed=" ${COMP_WORDS[*]:1:COMP_CWORD}" 2> /dev/null | cut -f 1)
}
complete -o default -F _foretoken foretoken
)";

constexpr std::string_view zsh_script = R"(#compdef foretoken
# Completes foretoken in zsh: keep it as _foretoken in a folder of $fpath, or source it.
_foretoken() {
  local -a candidates
  local line
  for line in "${(@f)$("$words[1]" completions words --typed=" ${words[2,CURRENT]}" 2> /dev/null)}"; do
    [[ -n $line ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#candidates )); then
    _describe foretoken candidates
  else
    _files
  fi
}
if [[ $funcstack[1] == _foretoken ]]; then
  _foretoken "$@"
else
  compdef _foretoken foretoken
fi
)";

constexpr std::string_view fish_script = R"(# Completes foretoken in fish: keep it as completions/foretoken.fish.
function __foretoken_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] completions words --typed=" $words[2..] $current" 2> /dev/null
end
complete -c foretoken -f -k -a '(__foretoken_complete)'
complete -c foretoken -F -n 'not count (__foretoken_complete) > /dev/null'
)";

// Names of the library, where a flag (or the word after a command) is known to take them.
std::vector<std::string> names_in_library(std::string_view flag, const Library& library) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<std::string>& more) { names.insert(names.end(), more.begin(), more.end()); };
  if (flag == "--device" || flag == "--to" || flag == "devices") add(library.hardware().device_names());
  if (flag == "--node" || flag == "devices") add(library.hardware().node_names());
  if (flag == "--cluster" || flag == "devices") add(library.hardware().cluster_names());
  if (flag == "--model" || flag == "models") {
    const ModelCatalogue models = library.models();
    for (const std::string& id : models.names()) names.push_back(id.substr(id.rfind('/') + 1));
  }
  return names;
}

std::vector<Completion> starting_with(const std::string& typed, std::vector<Completion> all) {
  std::erase_if(all, [&](const Completion& one) { return !one.word.starts_with(typed); });
  return all;
}

std::vector<Completion> command_names() {
  std::vector<Completion> all;
  for (const CommandKind& kind : all_commands()) {
    all.push_back({.word = std::string(kind.name), .about = std::string(kind.summary)});
  }
  return all;
}

std::vector<Completion> flag_names(const CommandDeclaration& command, const std::string& typed) {
  std::vector<Completion> all;
  for (const FlagDeclaration& flag : command.flags) {
    if (flag.is_positional()) continue;
    for (const std::string& name : flag.names) all.push_back({.word = name, .about = flag.help});
    const bool asked_for_no = typed.starts_with("--no");  // each would otherwise be listed twice
    if (flag.kind == FlagKind::flag && asked_for_no) {
      all.push_back({.word = "--no-" + flag.names.front().substr(2), .about = "Not: " + flag.help});
    }
  }
  all.push_back({.word = "--help", .about = "Flags and examples"});
  all.push_back({.word = "--json", .about = "Print one JSON document instead of text"});
  all.push_back({.word = "--spec", .about = "Ask the question in this JSON file (- = standard input)"});
  all.push_back({.word = "--from", .about = "Take the engine's flags from this launch line (text or @FILE)"});
  all.push_back({.word = "--print-spec", .about = "Print the question as JSON instead of answering it"});
  return all;
}

std::vector<Completion> flag_values(const FlagDeclaration& flag, const Library& library) {
  std::vector<std::string> values = flag.choices;
  const bool takes_names = flag.kind == FlagKind::text || flag.kind == FlagKind::list;
  if (takes_names) values = names_in_library(flag.names.front(), library);
  std::vector<Completion> all;
  for (const std::string& value : values) all.push_back({.word = value, .about = ""});
  return all;
}

// A flag and what was typed of its value: `--device h1`, `--device=h1`, and bash's `--device = h1`.
struct OpenValue {
  const FlagDeclaration* flag = nullptr;
  std::string before;  // of the last word: what stays as it is
  std::string typed;
};

std::optional<OpenValue> open_value(const CommandDeclaration& command, std::span<const std::string> words) {
  const std::string& last = words.back();
  const size_t count = words.size();
  OpenValue open{.typed = last};
  if (const size_t equals = last.find('='); last.starts_with("-") && equals != std::string::npos) {
    open = {find_flag(command, last.substr(0, equals)), last.substr(0, equals + 1), last.substr(equals + 1)};
  } else if (last == "=" && count >= 2) {
    open = {find_flag(command, words[count - 2]), "", ""};
  } else if (count >= 3 && words[count - 2] == "=") {
    open.flag = find_flag(command, words[count - 3]);
  } else if (count >= 2) {
    open.flag = find_flag(command, words[count - 2]);
  }
  if (open.flag == nullptr || open.flag->is_positional() || open.flag->kind == FlagKind::flag) return std::nullopt;
  if (const size_t comma = open.typed.rfind(','); open.flag->kind == FlagKind::list && comma != std::string::npos) {
    open.before += open.typed.substr(0, comma + 1);
    open.typed = open.typed.substr(comma + 1);
  }
  return open;
}

}  // namespace

std::vector<Completion> complete_words(std::span<const std::string> words, const Library& library) {
  if (words.empty()) return command_names();
  const std::span<const CommandKind> kinds = all_commands();
  const std::string& last = words.back();
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(), [&](const CommandKind& one) { return one.name == words.front(); });
  if (words.size() == 1 || kind == kinds.end()) {
    std::vector<Completion> all = command_names();
    all.push_back({.word = "--help", .about = "All commands"});
    all.push_back({.word = "--version", .about = "The program's version"});
    return starting_with(last, std::move(all));
  }
  CommandDeclaration command = declaration_of(*kind);
  for (const std::string& word : words.subspan(1, words.size() - 2)) {
    if (const CommandDeclaration* chosen = find_command(command.subcommands, word)) {
      CommandDeclaration next = *chosen;
      command = std::move(next);
    }
  }
  if (const std::optional<OpenValue> open = open_value(command, words)) {
    std::vector<Completion> values = starting_with(open->typed, flag_values(*open->flag, library));
    for (Completion& value : values) value.word = open->before + value.word;
    return values;
  }
  if (last.starts_with("-")) return starting_with(last, flag_names(command, last));
  std::vector<Completion> all;
  for (const CommandDeclaration& subcommand : command.subcommands) {
    all.push_back({.word = subcommand.name, .about = subcommand.summary});
  }
  for (const std::string& name : names_in_library(command.name, library)) all.push_back({.word = name, .about = ""});
  return starting_with(last, std::move(all));
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script;
  if (shell == "zsh") return zsh_script;
  ensure(shell == "fish", "there are scripts for three shells");
  return fish_script;
}

}  // namespace foretoken
