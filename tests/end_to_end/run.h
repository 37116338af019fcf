// Runs a foretoken command line in this process and keeps what it printed.
#pragma once

#include <string>
#include <vector>

namespace foretoken {

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

Outcome run_foretoken(const std::vector<std::string>& arguments);
Outcome run_foretoken(const std::string& line);  // split as a shell does

// Every stretch of spaces and line ends as one space: what is looked for in a message may span lines.
std::string in_one_line(const std::string& text);

}  // namespace foretoken
