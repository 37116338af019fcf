// Notes on a model as lines of an answer.
#pragma once

#include <span>
#include <string>

namespace foretoken {

// Those that an answer begins with, since it may be about another model than was meant; empty where there are none.
std::string model_warnings_text(std::span<const std::string> notes);
// The others.
std::string notes_text(std::span<const std::string> notes);

}  // namespace foretoken
