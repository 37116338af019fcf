// The day, for files that people keep and for how old facts are. Nothing that is predicted depends on it.
#pragma once

#include <string>

namespace foretoken {

std::string today();  // 2026-11-17, in UTC

}  // namespace foretoken
