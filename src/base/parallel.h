// The same work on several threads.
#pragma once

#include <functional>

namespace foretoken {

// Calls `work` on so many threads at once, this one among them, and waits for all. The first exception that one of them
// throws is thrown here.
void run_on_threads(unsigned threads, const std::function<void()>& work);

}  // namespace foretoken
