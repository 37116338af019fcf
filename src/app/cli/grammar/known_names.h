// Names in a list that a flag takes, against those that there are.
#pragma once

#include <span>
#include <string>

namespace foretoken {

// InputError, with the nearest name, for the first that is not known.
void check_names(const std::string& flag, std::span<const std::string> given, std::span<const std::string> known);

// The subcommand of `known` that people call `typed`, else the nearest of them; empty where none is near.
std::string name_meant(const std::string& typed, std::span<const std::string> known);

// What a command that has the flags `known` calls what another command calls `typed`, else the nearest of them; empty
// where none is near.
std::string flag_meant(const std::string& typed, std::span<const std::string> known);

// A word of a line as messages show it: one that nobody would see stands in quotes ("").
std::string shown_word(const std::string& word);

}  // namespace foretoken
