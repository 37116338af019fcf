// At most so many requests in flight: the semaphore in the client of `vllm bench serve --max-concurrency`.
#pragma once

#include <cstdint>
#include <memory>

#include "serving/requests/request.h"

namespace foretoken {

// Request k of `inner` is sent at its own arrival, or when the (k - limit + 1)th answer is complete if that is later;
// that moment becomes its arrival, so TTFT counts from there.
std::unique_ptr<RequestSource> closed_loop(std::unique_ptr<RequestSource> inner, int64_t limit);

}  // namespace foretoken
