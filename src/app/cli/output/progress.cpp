#include "app/cli/output/progress.h"

#include <unistd.h>

#include <iostream>

namespace foretoken {
namespace {

// One for each thread: a command reports from wherever it is, as it would to standard error.
thread_local ProgressListener* current_listener = nullptr;

}  // namespace

ProgressScope::ProgressScope(ProgressListener& listener) : outer_(current_listener) {
  current_listener = &listener;
}
ProgressScope::~ProgressScope() {
  current_listener = outer_;
}

void show_progress(const std::string& text) {
  if (current_listener != nullptr) {
    current_listener->progressed(text);
    current_listener->check_wanted();
  } else if (isatty(STDERR_FILENO) != 0) {
    std::cerr << text << std::endl;
  }
}

bool has_progress_listener() {
  return current_listener != nullptr;
}

void check_still_wanted() {
  if (current_listener != nullptr) current_listener->check_wanted();
}

std::function<void()> wanted_check() {
  return [listener = current_listener] {
    if (listener != nullptr) listener->check_wanted();
  };
}

}  // namespace foretoken
