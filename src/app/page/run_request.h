// A request of the page, read and checked: a command line of the program, and perhaps a device of the page's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "library/library.h"

namespace foretoken {

struct RunRequest {
  std::vector<std::string> arguments;  // for answer_command
  std::string command_line;            // as a person would type it, with the page's own device in a file beside
};

// What a body may be at most; a body beyond any of it is refused.
inline constexpr size_t most_body_bytes = 256 * 1024;
inline constexpr size_t longest_flag_value = 400;  // bytes, of one line
inline constexpr size_t most_flag_values = 64;     // of one flag

// {"command": "step", "flags": {"model": "...", "batch": 64, ...}, "device": {a device file's content, optional}}, or
// {"command": "compare", "first": {"command", "flags"}, "second": {...}} of two such questions.
// InputError for anything but the commands, flags and values of page_flags.h.
RunRequest read_run_request(std::string_view body, const Library& library);

}  // namespace foretoken
