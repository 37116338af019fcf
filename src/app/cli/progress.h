// Progress of long work, for a person who waits: on standard error, and only when that is a terminal.
#pragma once

#include <string>

namespace foretoken {

void show_progress(const std::string& text);

}  // namespace foretoken
