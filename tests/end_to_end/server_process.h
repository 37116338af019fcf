// The program itself as a server: started at a free port, asked, told to stop.
#pragma once

#include <signal.h>

#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/child_process.h"

namespace foretoken {

class ServerProcess {
 public:
  // `command`: "endpoint --model ..."; `before`: what the shell does first, as `ulimit -v 4000000;`.
  explicit ServerProcess(const std::string& command, const std::string& before = "") {
    // The shell says its number, which is then the program's.
    const std::string line = before + "echo $$; exec " FORETOKEN_PROGRAM " " + command + " --port 0";
    thread_ = std::thread([this, line] {
      const std::vector<std::string> arguments = {"sh", "-c", line};
      status = run_child(arguments, [this](std::string_view text) { take(std::string(text)); });
      if (!named_port_) port_.set_value(0);  // it ended before
    });
    pid = pid_.get_future().get();
    port = port_.get_future().get();
    if (port > 0) return;
    thread_.join();
    throw std::runtime_error("the server ended at once: " + said);
  }
  ~ServerProcess() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    kill(pid, SIGTERM);
    thread_.join();
  }

  pid_t pid = 0;
  int port = 0, status = -1;
  std::string said;

 private:
  void take(const std::string& line) {
    constexpr std::string_view before_port = "http://127.0.0.1:";
    if (lines_++ == 0) return pid_.set_value(std::stoi(line));
    if (const size_t at = line.find(before_port); at != std::string::npos) {
      named_port_ = true;
      return port_.set_value(std::stoi(line.substr(at + before_port.size())));
    }
    said += line + "\n";
  }

  int lines_ = 0;
  bool named_port_ = false;
  std::promise<pid_t> pid_;
  std::promise<int> port_;
  std::thread thread_;
};

}  // namespace foretoken
