// What was read from a launch line, and what of it had no use.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serving/engine/launch_line.h"

namespace foretoken {

struct LaunchedQuestion {
  LaunchLine line;
  std::vector<std::string> unused;  // fields that the command does not have
};

std::string launch_line_text(const LaunchedQuestion& launched);
Json launch_line_json(const LaunchedQuestion& launched);

}  // namespace foretoken
