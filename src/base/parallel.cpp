#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace foretoken {

void run_on_threads(unsigned threads, const std::function<void()>& work) {
  std::exception_ptr failure;
  std::mutex guard;
  const auto guarded = [&]() noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(guarded);
    guarded();
  }
  if (failure) std::rethrow_exception(failure);
}

void for_each_on_threads(unsigned threads, size_t count, const std::function<void(size_t i)>& work) {
  std::atomic<size_t> next = 0;
  const auto most = static_cast<unsigned>(std::clamp<size_t>(count, 1, std::max(1U, threads)));
  run_on_threads(most, [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  });
}

unsigned threads_to_use(int64_t asked) {
  return asked > 0 ? static_cast<unsigned>(asked) : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace foretoken
