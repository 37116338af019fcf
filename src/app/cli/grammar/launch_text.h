// A launch line as users give it to a flag: text, or @FILE.
#pragma once

#include <string>

#include "serving/engine/launch_line.h"

namespace foretoken {

// Files that the line names are looked for beside its own. InputError names the flag or the file.
LaunchLine read_launch_text(const std::string& flag, const std::string& given);

}  // namespace foretoken
