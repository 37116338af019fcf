// The page itself, built from web/ into one file that is part of the program.
#pragma once

#include <string_view>

namespace foretoken {

std::string_view page_html();

}  // namespace foretoken
