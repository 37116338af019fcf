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

// What the program says when it is called alone.
inline constexpr std::string_view first_questions =
    "foretoken predicts how fast an ML workload will run, and what memory, energy and money it needs, before you rent\n"
    "the hardware. Five questions to start with:\n"
    "\n"
    "Which GPUs serve my model within my latency limits, and what does that cost?\n"
    "  foretoken plan serve --model Llama-3.1-8B --hardware h100_sxm:2,l40s:4 --slo ttft:500,tpot:50 --request-rate "
    "10\n"
    "\n"
    "How does an engine behave under load?\n"
    "  foretoken serve --model Llama-3.1-8B --device h100_sxm --request-rate 4 --num-prompts 200\n"
    "\n"
    "How long does a training run take, and does it fit?\n"
    "  foretoken train --model Llama-3.1-70B --cluster h100_ib_rail --devices 64 -tp 4 -pp 8 --global-batch-size 128\n"
    "\n"
    "Where does the time of one step go?\n"
    "  foretoken step --model Llama-3.1-70B --device h100_sxm -tp 8 --phase decode --batch 64 --context-len 2048\n"
    "\n"
    "Does my own server do what was predicted?\n"
    "  foretoken observe --url http://127.0.0.1:8000 --request-rate 2 --num-prompts 100 --out my-run\n"
    "  foretoken replay-run my-run --model Llama-3.1-8B --device h100_sxm\n"
    "\n"
    "A first answer in seconds: foretoken demo. In the browser: foretoken ui. All commands: foretoken --help.\n"
    "What a word means: foretoken explain ttft\n";

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
  bool is_money = false;        // a number that may be a price: "$2.5/h", "20k"
  // Of a choice between engines: releases of these families are choices too ("vllm-0.12").
  std::vector<std::string> release_families = {};

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
