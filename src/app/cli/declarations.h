// What can be said to the program, as its commands declare it: the manual page, shell completions and Python are made
// from this, as --help is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

inline constexpr std::string_view program_about =
    "foretoken predicts how fast an ML workload will run, and what memory it needs,\n"
    "before anyone rents the hardware.";

inline constexpr std::string_view program_notes =
    "Start with `foretoken demo`. Each command teaches its flags: `foretoken step --help`.\n"
    "Every command takes --json: one JSON document on standard output and nothing else.\n"
    "Every command takes --spec FILE and --print-spec: its flags as JSON (see `foretoken schema`).\n"
    "serve, endpoint, step and plan serve take --from 'vllm serve ...' or --from @FILE: what you start servers with.\n"
    "Exit status: 0 success; 3 the answer is that nothing fits or serves (`failure` in --json has the reason);\n"
    "2 wrong input; 1 a bug in foretoken.";

enum class FlagKind { flag, text, list, texts, integer, number, choice };

std::string_view flag_kind_name(FlagKind kind);

struct FlagDeclaration {
  std::vector<std::string> names;  // --tensor-parallel-size, -tp; without dashes: a word at its place
  FlagKind kind = FlagKind::text;
  std::string help;
  std::string fallback = {};   // what holds when it is not given; empty where there is nothing to show
  Json usual = {};             // the same as a value of its own type; null where there is none
  Json least = {}, most = {};  // of numbers; null where there is no bound
  std::vector<std::string> choices = {};
  std::string heading = {};
  bool required = false;
  bool takes_settings = false;  // KEY=VALUE,...: an object in JSON

  bool is_positional() const { return !names.front().starts_with("-"); }
};

struct CommandDeclaration {
  std::string name, summary, footer;
  std::vector<FlagDeclaration> flags;
  std::vector<CommandDeclaration> subcommands;
  bool needs_subcommand = false;  // it asks nothing by itself
};

// The name of a flag in JSON and Python: --max-num-seqs is max_num_seqs.
std::string field_name(std::string_view flag);
std::string flag_name(std::string_view field);  // --max-num-seqs

// Flags in place of the {fields} that a library's sentence names (base/error.h); of JSON: in all its texts and keys.
std::string with_flag_names(std::string_view text);
void name_flags(Json& json);

// Nothing where none has that name.
const FlagDeclaration* find_flag(const CommandDeclaration& command, std::string_view name);
const CommandDeclaration* find_command(std::span<const CommandDeclaration> commands, std::string_view name);

Json declaration_json(const CommandDeclaration& command);

}  // namespace foretoken
