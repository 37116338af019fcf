#include <iostream>
#include <string>
#include <vector>

#include "app/cli/grammar/command_line.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return foretoken::run_command_line(arguments, std::cout, std::cerr);
}
