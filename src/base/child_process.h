// Runs another program and hands on what it prints, line by line. No shell: arguments arrive as they are given.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace foretoken {

struct ChildLimits {
  size_t max_line_bytes = 64 * 1024;  // a longer line is handed on in pieces
  double most_seconds = 0;            // of wall time; 0 = as long as it takes
};

// `arguments` are the program (looked up in PATH) and what it is called with; its standard output and error arrive
// together, one line at a time without the line end. Returns its exit status, or 128 + the signal that ended it.
// InputError when it cannot be started, and when it is ended because it takes too long.
int run_child(std::span<const std::string> arguments, const std::function<void(std::string_view line)>& take_line,
              const ChildLimits& limits = {});

}  // namespace foretoken
