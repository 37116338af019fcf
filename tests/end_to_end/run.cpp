#include "run.h"

#include <cstdlib>
#include <sstream>

#include "app/cli/grammar/command_line.h"
#include "base/text.h"

namespace foretoken {

Outcome run_foretoken(const std::vector<std::string>& arguments) {
  // The test program does not lie beside data/ as the real one does.
  setenv("FORETOKEN_LIBRARY", FORETOKEN_SOURCE_DIR "/data", 1);
  setenv("FORETOKEN_HOME", "", 0);  // no devices of whoever runs the tests
  std::ostringstream out, err;
  const int status = run_command_line(arguments, out, err);
  return {.status = status, .out = out.str(), .err = err.str()};
}

Outcome run_foretoken(const std::string& line) {
  return run_foretoken(shell_words(line).value());
}

std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char letter : text) {
    const bool space = letter == ' ' || letter == '\n';
    if (!space || line.empty() || line.back() != ' ') line += space ? ' ' : letter;
  }
  return line;
}

}  // namespace foretoken
