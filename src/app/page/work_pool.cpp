#include "app/page/work_pool.h"

#include <utility>

#include <fmt/format.h>

#include "app/cli/output/progress.h"

namespace foretoken {
namespace {

struct NotWanted {};  // no std::exception: whoever handles those lets it pass

}  // namespace

// What a piece of work tells, and asks whether to go on.
struct WorkPool::Job : ProgressListener {
  Job(WorkPool& of, uint64_t number, std::function<std::string()> what, std::string otherwise)
      : pool(&of), id(number), work(std::move(what)), too_late(std::move(otherwise)) {}

  void progressed(const std::string& text) override { pool->tell(*this, {.id = id, .text = text}); }
  void check_wanted() override {
    if (cancelled || std::chrono::steady_clock::now() > end) throw NotWanted();
  }

  WorkPool* pool;
  uint64_t id;
  std::function<std::string()> work;
  std::string too_late;
  std::atomic<bool> cancelled = false;
  std::chrono::steady_clock::time_point end;
};

WorkPool::WorkPool(const WorkPoolSettings& settings) : settings_(settings) {
  for (size_t i = 0; i < settings_.threads; ++i) threads_.emplace_back([this] { serve(); });
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& [id, job] : jobs_) job->cancelled = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::submit(uint64_t id, std::function<std::string()> work, std::string too_late) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= settings_.most_waiting) return false;
    const size_t before = running_ + waiting_.size();
    if (before >= settings_.threads) {
      news_.push_back({.id = id, .text = fmt::format("waiting for {} asked before", before)});
    }
    auto job = std::make_shared<Job>(*this, id, std::move(work), std::move(too_late));
    jobs_[id] = job;
    waiting_.push_back(std::move(job));
  }
  more_.notify_one();
  return true;
}

void WorkPool::cancel(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  found->second->cancelled = true;
  std::erase(waiting_, found->second);
  jobs_.erase(found);
  std::erase_if(news_, [&](const WorkNews& news) { return news.id == id; });
}

std::vector<WorkNews> WorkPool::take_news() {
  const std::lock_guard lock(mutex_);
  for (const WorkNews& news : news_) {
    if (news.is_result) jobs_.erase(news.id);
  }
  return std::exchange(news_, {});
}

bool WorkPool::is_idle() const {
  const std::lock_guard lock(mutex_);
  return jobs_.empty();
}

void WorkPool::tell(const Job& job, WorkNews news) {
  const std::lock_guard lock(mutex_);
  if (!job.cancelled) news_.push_back(std::move(news));
}

void WorkPool::serve() {
  while (true) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      job = waiting_.front();
      waiting_.pop_front();
      ++running_;
    }
    job->end = std::chrono::steady_clock::now() + settings_.most_time;
    std::string result;
    try {
      const ProgressScope scope(*job);
      result = job->work();
    } catch (const NotWanted&) {
      result = job->too_late;
    }
    {
      const std::lock_guard lock(mutex_);
      --running_;
    }
    tell(*job, {.id = job->id, .is_result = true, .text = std::move(result)});
  }
}

}  // namespace foretoken
