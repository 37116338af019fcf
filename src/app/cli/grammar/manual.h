// The manual page, in the language of man.
#pragma once

#include <span>
#include <string>

#include "app/cli/grammar/declarations.h"

namespace foretoken {

// One page for the whole program: each command and subcommand with its flags and examples.
std::string manual_page(std::span<const CommandDeclaration> commands, const std::string& version);

}  // namespace foretoken
