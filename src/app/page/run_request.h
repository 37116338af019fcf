// A request of the page, read and checked: a command line of the program, and perhaps a device of the page's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/library.h"

namespace foretoken {

struct RunRequest {
  std::vector<std::string> arguments;  // for answer_command
  std::string device_name;             // of a device of the page's own, which stands in the arguments
};

// {"command": "step", "flags": {"model": "...", "batch": 64, ...}, "device": {a device file's content, optional}}.
// InputError for anything but the commands, flags and values of page_flags.h.
RunRequest read_run_request(std::string_view body, const Library& library);

// As a person would type it, with the page's own device in a file beside.
std::string command_line_text(const RunRequest& request);

}  // namespace foretoken
