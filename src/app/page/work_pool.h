// Work that others wait for, on a few threads: a limited queue, progress on the way, an end when nobody wants it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace foretoken {

struct WorkPoolSettings {
  size_t threads = 2;
  size_t most_waiting = 16;
  std::chrono::milliseconds most_time{120'000};  // of one piece of work, from when it begins
};

struct WorkNews {
  uint64_t id = 0;
  bool is_result = false;  // the last of its id; else progress
  std::string text;
};

class WorkPool {
 public:
  explicit WorkPool(const WorkPoolSettings& settings);
  ~WorkPool();  // stops what runs, waits for it
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // False when too many wait already; work that has to wait tells so. The work returns its result, in which it must say
  // what went wrong: it throws only what check_still_wanted (app/cli/output/progress.h) throws; `too_late` is then its
  // result.
  bool submit(uint64_t id, std::function<std::string()> work, std::string too_late);
  void cancel(uint64_t id);           // no more news of it
  std::vector<WorkNews> take_news();  // in the order in which they came
  bool is_idle() const;

 private:
  struct Job;
  void serve();
  void tell(const Job& job, WorkNews news);

  WorkPoolSettings settings_;
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::map<uint64_t, std::shared_ptr<Job>> jobs_;  // waiting, running, or with news that were not taken
  std::vector<WorkNews> news_;
  size_t running_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace foretoken
