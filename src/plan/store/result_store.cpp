#include "plan/store/result_store.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include "plan/store/postgres_store.h"
#include "plan/store/process_name.h"
#include "plan/store/sqlite_store.h"

namespace foretoken {

class ResultStore::Implementation {
 public:
  Implementation(const std::string& location, const std::string& question, const ClaimTimes& times)
      : backend_(is_postgres_address(location) ? postgres_store(location, question) : sqlite_store(location, question)),
        owner_(process_name()),
        times_(times),
        renewal_([this](const std::stop_token& stop) { renew_until(stop); }) {}

  ~Implementation() {
    renewal_.request_stop();
    renewal_.join();
    try {
      renew(0);
    } catch (const std::runtime_error&) {
      // Then the claims end by themselves.
    }
  }

  StoreClaim claim(std::span<const std::string> keys) {
    const std::lock_guard lock(guard_);
    StoreClaim found = backend_->claim(keys, owner_, times_.lease_s);
    if (found.mine) claimed_.insert(keys[*found.mine]);
    return found;
  }

  void finish(const std::string& key, const std::string& result) {
    const std::lock_guard lock(guard_);
    backend_->finish(key, result);
    claimed_.erase(key);
  }

  StoreCounts counts() {
    const std::lock_guard lock(guard_);
    return backend_->counts();
  }

 private:
  void renew(double lease_s) {
    if (claimed_.empty()) return;
    backend_->renew(std::vector<std::string>(claimed_.begin(), claimed_.end()), owner_, lease_s);
  }

  void renew_until(const std::stop_token& stop) {
    std::unique_lock lock(guard_);
    const auto pause = std::chrono::duration<double>(times_.renewal_s);
    while (!wake_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
      try {
        renew(times_.lease_s);
      } catch (const std::runtime_error&) {
        // The next renewal may succeed; whoever finishes the work hears of what is wrong.
      }
    }
  }

  std::unique_ptr<StoreBackend> backend_;
  std::string owner_;
  ClaimTimes times_;
  std::mutex guard_;               // of the backend and of what is claimed
  std::set<std::string> claimed_;  // and not finished
  std::condition_variable_any wake_;
  std::jthread renewal_;  // last: it uses all of the above
};

ResultStore::ResultStore(const std::string& location, const std::string& question, const ClaimTimes& times)
    : implementation_(std::make_unique<Implementation>(location, question, times)) {}

ResultStore::~ResultStore() = default;

StoreClaim ResultStore::claim(std::span<const std::string> keys) {
  return implementation_->claim(keys);
}

void ResultStore::finish(const std::string& key, const std::string& result) {
  implementation_->finish(key, result);
}

StoreCounts ResultStore::counts() {
  return implementation_->counts();
}

StoreCounts ResultStore::counts_of(const std::string& location) {
  return is_postgres_address(location) ? postgres_counts(location) : sqlite_counts(location);
}

}  // namespace foretoken
