// Parts of a text replaced by another.
#pragma once

#include <string>
#include <string_view>

namespace foretoken {

// Every `from`, from left to right; what was put in is not looked at again. An empty `from` is found nowhere.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace foretoken
