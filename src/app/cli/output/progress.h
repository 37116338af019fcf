// Progress of long work, for whoever waits: a person at a terminal, or a program that asked for the work.
#pragma once

#include <functional>
#include <string>

namespace foretoken {

class ProgressListener {
 public:
  virtual ~ProgressListener() = default;
  virtual void progressed(const std::string& text) = 0;
  virtual void check_wanted() = 0;  // throws where the work need not go on; on any thread
};

// While it lives, work of this thread tells its progress to the listener.
class ProgressScope {
 public:
  explicit ProgressScope(ProgressListener& listener);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  ProgressListener* outer_;
};

// To the listener, which may end the work here; without one on standard error, where that is a terminal.
void show_progress(const std::string& text);
bool has_progress_listener();
// Where long work can end early. Throws what the listener throws.
void check_still_wanted();
// The same for other threads that work for this one: asks the listener that this thread has now.
std::function<void()> wanted_check();

}  // namespace foretoken
