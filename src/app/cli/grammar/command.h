// What a command is: flags in, one answer out. The list of commands is commands/list.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "app/cli/grammar/options.h"
#include "base/json.h"
#include "library/library.h"

namespace foretoken {

// The same result for people and for programs; one of them is printed, an empty one not at all.
struct Answer {
  std::string text;
  Json json;
  int exit_status = 0;
  std::string failure = {};  // one sentence where nothing fits or serves: the text begins with it
  bool has_results = true;   // false where a failure left nothing to compute
};

// Exit status of a question that was understood and whose honest answer is no: nothing fits, serves or was scored.
inline constexpr int answer_is_no = 3;

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Options& options) = 0;            // binds flags to members
  virtual Answer run(const Library& library) const = 0;  // after parsing; throws InputError for wrong input
};

struct CommandKind {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Command> (*make)();
};

std::span<const CommandKind> all_commands();

}  // namespace foretoken
