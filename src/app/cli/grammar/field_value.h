// The value of a field in a question, as the texts that its flag takes.
#pragma once

#include <string>
#include <vector>

#include "app/cli/grammar/declarations.h"
#include "base/json.h"

namespace foretoken {

// 4096 is "4096". A list is several texts where the flag takes several, else one with commas. An object is
// KEY=VALUE,... where the flag takes settings, KEY=VALUE each where it takes several texts, else JSON. InputError for
// another type.
std::vector<std::string> field_texts(const FlagDeclaration& flag, const JsonView& value);

// The same on a command line.
std::vector<std::string> flag_words(const FlagDeclaration& flag, const std::vector<std::string>& texts);

}  // namespace foretoken
