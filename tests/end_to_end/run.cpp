#include "run.h"

#include <cstdlib>
#include <sstream>

#include "app/cli/command_line.h"

namespace foretoken {

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = '\0';
  bool in_word = false;
  for (const char c : line) {
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ') {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(word);
  return words;
}

Outcome run_foretoken(const std::vector<std::string>& arguments) {
  // The test program does not lie beside data/ as the real one does.
  setenv("FORETOKEN_LIBRARY", FORETOKEN_SOURCE_DIR "/data", 1);
  std::ostringstream out, err;
  const int status = run_command_line(arguments, out, err);
  return {.status = status, .out = out.str(), .err = err.str()};
}

Outcome run_foretoken(const std::string& line) {
  return run_foretoken(split_words(line));
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
