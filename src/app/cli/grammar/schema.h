// The JSON Schema (draft 2020-12) of questions, made from what commands declare.
#pragma once

#include <span>

#include "app/cli/grammar/declarations.h"

namespace foretoken {

// Of one command; `above` are its parents, outermost first, whose flags it takes too.
Json question_schema(const CommandDeclaration& command, std::span<const CommandDeclaration* const> above = {});

// Of all these commands and their subcommands.
Json questions_schema(std::span<const CommandDeclaration> commands);

}  // namespace foretoken
