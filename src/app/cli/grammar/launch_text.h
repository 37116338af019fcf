// A launch line as users give it to a flag: text, or @FILE.
#pragma once

#include <string>

#include "library/library.h"
#include "serving/engine/launch_line.h"

namespace foretoken {

// Files that the line names are looked for beside its own. InputError names the flag or the file.
LaunchLine read_launch_text(const std::string& flag, const std::string& given, const ExpertsOfModel& experts_of);

// Of models that the library knows, and of the user's files.
ExpertsOfModel experts_of_models(const Library& library);

}  // namespace foretoken
