#include "plan/store/process_name.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace foretoken {
namespace {

// Where processes have the same numbers. Empty where the system does not say.
std::string machine_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::error_code failed;
  const std::filesystem::path numbers = std::filesystem::read_symlink("/proc/self/ns/pid", failed);
  if (!(file >> boot) || failed) return "";
  return boot + " " + numbers.string();
}

// Clock ticks from the machine's start to the process's. Empty: there is no such process, or only its remains.
std::string began(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  const size_t end_of_program = line.rfind(')');  // its name may hold anything
  if (end_of_program == std::string::npos) return "";
  std::istringstream fields(line.substr(end_of_program + 1));
  constexpr int state = 3, start_time = 22;  // man 5 proc
  std::string word;
  for (int field = state; field <= start_time && fields >> word; ++field) {
    if (field == state && (word == "Z" || word == "X")) return "";
  }
  return word;
}

}  // namespace

std::string process_name() {
  const std::string number = std::to_string(getpid());
  return fmt::format("{}|{}|{}", machine_name(), number, began(number));
}

bool process_is_gone(const std::string& name) {
  const size_t first = name.find('|'), second = name.rfind('|');
  if (first == std::string::npos || second == first) return false;
  const std::string machine = name.substr(0, first);
  if (machine.empty() || machine != machine_name()) return false;
  const std::string number = name.substr(first + 1, second - first - 1);
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return false;
  return began(number) != name.substr(second + 1);
}

}  // namespace foretoken
