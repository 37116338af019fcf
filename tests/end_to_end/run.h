// Runs a foretoken command line in this process and keeps what it printed.
#pragma once

#include <string>
#include <vector>

namespace foretoken {

struct Run {
  int status = 0;
  std::string out;
  std::string err;
};

Run run_foretoken(const std::vector<std::string>& arguments);
Run run_foretoken(const std::string& line);  // split at spaces; '...' and "..." keep a word together

std::vector<std::string> split_words(const std::string& line);

}  // namespace foretoken
