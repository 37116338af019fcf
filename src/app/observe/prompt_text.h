// Text for prompts of a given number of tokens. Words are of three letters behind a space: one token in the tokenizers
// of today's models, and in that of `foretoken endpoint`.
#pragma once

#include <cstdint>
#include <string>

#include "serving/requests/request.h"

namespace foretoken {

// Equal for equal requests and seeds. Prompts that share prefix blocks share their text.
std::string prompt_text(const Request& request, uint64_t seed);

}  // namespace foretoken
