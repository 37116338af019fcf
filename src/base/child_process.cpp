#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

extern "C" {
extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX wants it declared by the program
}

namespace foretoken {
namespace {

// An open file that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

[[noreturn]] void cannot_start(const std::string& program, int error) {
  throw InputError(
      {.source = program, .value = std::strerror(error), .expected = "a program that can be started from here"});
}

using Clock = std::chrono::steady_clock;

// False when nothing arrived before the deadline.
bool wait_for_output(int from, std::optional<Clock::time_point> deadline) {
  if (!deadline) return true;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    if (left.count() <= 0) return false;
    constexpr int64_t longest_wait = 60'000;
    pollfd waiting{.fd = from, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(std::min(left.count(), longest_wait))) > 0) return true;
  }
}

// False when the deadline passed before the end.
bool hand_on_lines(int from, const std::function<void(std::string_view)>& take_line, size_t max_line_bytes,
                   std::optional<Clock::time_point> deadline) {
  std::array<char, 4096> buffer{};
  std::string line;
  for (;;) {
    if (!wait_for_output(from, deadline)) return false;
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (const char c : std::string_view(buffer.data(), static_cast<size_t>(count))) {
      if (c != '\n') line += c;
      if (c != '\n' && line.size() < max_line_bytes) continue;
      take_line(line);
      line.clear();
    }
  }
  if (!line.empty()) take_line(line);
  return true;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    ensure(errno == EINTR, "a child that was started can be waited for");
  }
  constexpr int signal_base = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : signal_base + WTERMSIG(status);
}

}  // namespace

int run_child(std::span<const std::string> arguments, const std::function<void(std::string_view line)>& take_line,
              const ChildLimits& limits) {
  ensure(!arguments.empty(), "a child has a program");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start(arguments.front(), errno);
  Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  SpawnActions actions;
  posix_spawn_file_actions_adddup2(actions.get(), input.number(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), input.number(), STDERR_FILENO);
  std::vector<std::string> words(arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, pointers.front(), actions.get(), nullptr, pointers.data(), environ)) {
    cannot_start(arguments.front(), error);
  }
  input.close();  // else the pipe would never end
  std::optional<Clock::time_point> deadline;
  if (limits.most_seconds > 0) {
    deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.most_seconds));
  }
  bool in_time = true;
  try {
    in_time = hand_on_lines(output.number(), take_line, limits.max_line_bytes, deadline);
  } catch (...) {
    output.close();  // a child that still writes must not wait for us while we wait for it
    wait_for(child);
    throw;
  }
  if (!in_time) {
    ::kill(child, SIGKILL);
    wait_for(child);
    throw InputError({.source = arguments.front(),
                      .value = "still running",
                      .expected = fmt::format("a program that ends within {:g} s", limits.most_seconds)});
  }
  return wait_for(child);
}

}  // namespace foretoken
