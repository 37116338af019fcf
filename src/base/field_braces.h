// Sentences name a field as "{name}" (error.h). What users wrote may look the same and is not one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foretoken {

// Characters of the name that `text` begins with in braces, or 0.
size_t field_in_braces(std::string_view text);

// The same text for a sentence: "{name}" in it is marked, "\{name}", so that with_field_names() leaves it alone.
std::string with_literal_braces(std::string_view text);

// Takes the marks away. Once, where a sentence leaves the program; InputError::what() has none.
std::string without_literal_marks(std::string_view text);

}  // namespace foretoken
