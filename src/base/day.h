// Days as files name them.
#pragma once

#include <string_view>

namespace foretoken {

bool is_day(std::string_view text);  // 2026-11-17

}  // namespace foretoken
