// Ends a search that a person no longer waits for: after some time, or at a signal.
#pragma once

#include <csignal>

#include <chrono>
#include <optional>

namespace foretoken {

// While it lives, SIGINT and SIGTERM stop the search, which then answers with what it has; a second one ends the
// program. Signals of a program that does this work for others, and has a progress listener, are left alone.
class SearchStop {
 public:
  // 0 s = no limit; `at_signals` = false leaves signals alone.
  SearchStop(double limit_s, bool at_signals);
  ~SearchStop();
  SearchStop(const SearchStop&) = delete;
  SearchStop& operator=(const SearchStop&) = delete;

  void check() const;  // on any thread; throws SearchStopped when it is time

 private:
  std::optional<std::chrono::steady_clock::time_point> until_;
  bool at_signals_;
  struct sigaction interrupt_ = {}, terminate_ = {};  // as they were
};

}  // namespace foretoken
