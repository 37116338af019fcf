// The same work on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace foretoken {

// Calls `work` on so many threads at once, this one among them, and waits for all. The first exception that one of them
// throws is thrown here.
void run_on_threads(unsigned threads, const std::function<void()>& work);

// Calls `work` once for each number below `count`, on so many threads.
void for_each_on_threads(unsigned threads, size_t count, const std::function<void(size_t i)>& work);

// As many threads as were asked for; all cores where that is 0.
unsigned threads_to_use(int64_t asked);

}  // namespace foretoken
