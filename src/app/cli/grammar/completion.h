// What a shell offers when its user presses Tab. The scripts know nothing: they ask the program, so what they offer is
// what it takes, with the names of its library.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "library/library.h"

namespace foretoken {

struct Completion {
  std::string word;   // whole, with what was typed of it
  std::string about;  // may be empty
};

// `words`: those typed after the program's name, the last one being completed (empty: not begun). Nothing where the
// shell should offer files.
std::vector<Completion> complete_words(std::span<const std::string> words, const Library& library);

// bash, zsh or fish.
std::string_view completion_script(std::string_view shell);

}  // namespace foretoken
