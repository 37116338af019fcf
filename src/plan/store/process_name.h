// Which process is at work, as a text that others can check: whether it still lives.
#pragma once

#include <string>

namespace foretoken {

// Of this process: the machine since its last start, the container, and the process with the time it began.
std::string process_name();

// True only where that is certain: it ran on this machine and is no more. Of other machines nobody here can tell.
bool process_is_gone(const std::string& name);

}  // namespace foretoken
