#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "app/cli/grammar/command_line.h"
#include "report/parts/table.h"

namespace {

// Text for a narrow terminal is wrapped there; what goes to a file or a pipe is always the same.
void fit_terminal() {
  constexpr unsigned narrowest = 80;
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
  foretoken::set_page_width(std::min<size_t>(foretoken::page_width(), std::max<size_t>(narrowest, size.ws_col)));
}

}  // namespace

int main(int argc, char** argv) {
  fit_terminal();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return foretoken::run_command_line(arguments, std::cout, std::cerr);
}
