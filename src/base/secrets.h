// Passwords in addresses must not reach messages, pages or printed questions.
#pragma once

#include <string>
#include <string_view>

namespace foretoken {

// The text with every password of an address replaced by "***": scheme://user:PASSWORD@host and ?password=PASSWORD.
// A text that is one address is taken as a whole; inside a sentence an address ends at a space or a quotation mark.
std::string without_passwords(std::string_view text);

}  // namespace foretoken
