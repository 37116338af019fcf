#include "app/cli/progress.h"

#include <unistd.h>

#include <iostream>

namespace foretoken {

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) != 0) std::cerr << text << std::endl;
}

}  // namespace foretoken
