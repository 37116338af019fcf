// Sentences name a field as "{name}" (error.h). What users wrote may look the same and is not one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foretoken {

// Characters of the name that `text` begins with in braces, or 0.
size_t field_in_braces(std::string_view text);

// The same text for a sentence: "{name}" in it is written "\{name}", which with_field_names() turns back.
std::string with_literal_braces(std::string_view text);

}  // namespace foretoken
