#include "app/cli/grammar/help_layout.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr std::string_view goes_on = " \\";
constexpr size_t flag_indent = 6;

// The last place up to `width` where a flag begins outside quotes, else the first one behind it; npos where there is
// none.
size_t break_place(const std::string& line, size_t width) {
  size_t found = std::string::npos;
  char quote = 0;
  for (size_t i = 1; i + 1 < line.size() && (i <= width || found == std::string::npos); ++i) {
    if (quote == 0 && (line[i] == '\'' || line[i] == '"')) {
      quote = line[i];
    } else if (line[i] == quote) {
      quote = 0;
    }
    const bool first_word = line.find_first_not_of(' ') >= i;
    if (quote == 0 && !first_word && line[i] == ' ' && line[i + 1] == '-') found = i;
  }
  return found;
}

std::string wrapped_example(std::string line) {
  std::string out;
  while (line.size() > page_width()) {
    const size_t cut = break_place(line, page_width() - goes_on.size());
    if (cut == std::string::npos) break;
    out.append(line, 0, cut).append(goes_on).append("\n");
    line = std::string(flag_indent, ' ') + line.substr(cut + 1);
  }
  return out + line + "\n";
}

bool is_example(const std::string& line) {
  return line.starts_with(' ');
}

bool continues(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin != std::string::npos && begin >= 4 && line[begin] == '-';
}

// Prose that goes on in the next line of the source, however that was broken.
bool is_open(const std::string& line) {
  return !line.empty() && !is_example(line) && line.back() != '.' && line.back() != ':';
}

}  // namespace

std::string laid_out_notes(const std::string& notes) {
  std::vector<std::string> lines;
  std::istringstream text(notes);
  for (std::string line; std::getline(text, line);) {
    if (continues(line) && !lines.empty() && is_example(lines.back())) {
      std::string& before = lines.back();
      if (before.ends_with(goes_on)) before.erase(before.size() - goes_on.size());
      before += line.substr(line.find_first_not_of(' ') - 1);
    } else if (!lines.empty() && is_open(lines.back()) && !line.empty() && !is_example(line)) {
      lines.back() += " " + line;
    } else {
      lines.push_back(std::move(line));
    }
  }
  std::string out;
  for (const std::string& line : lines) {
    out += is_example(line) ? wrapped_example(line) : wrap_lines(line + "\n", page_width(), 0);
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace foretoken
