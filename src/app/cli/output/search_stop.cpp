#include "app/cli/output/search_stop.h"

#include <atomic>

#include "app/cli/output/progress.h"
#include "plan/serving/plan_evaluator.h"

namespace foretoken {
namespace {

// A signal handler can reach nothing else.
std::atomic<bool> signal_came = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void note_signal(int /*number*/) {
  signal_came = true;
}

}  // namespace

SearchStop::SearchStop(double limit_s, bool at_signals) : at_signals_(at_signals && !has_progress_listener()) {
  if (limit_s > 0) {
    until_ = std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(limit_s));
  }
  if (!at_signals_) return;
  signal_came = false;
  struct sigaction noted = {};
  noted.sa_handler = note_signal;
  noted.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &noted, &interrupt_);
  sigaction(SIGTERM, &noted, &terminate_);
}

SearchStop::~SearchStop() {
  if (!at_signals_) return;
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

void SearchStop::check() const {
  if ((at_signals_ && signal_came) || (until_ && std::chrono::steady_clock::now() >= *until_)) throw SearchStopped();
}

}  // namespace foretoken
