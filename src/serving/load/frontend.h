// The way from a client to the engine's queue.
#pragma once

#include <memory>

#include "compose/stack.h"
#include "serving/request.h"

namespace foretoken {

// Requests reach the engine later than they were sent, in the same order; their arrival stays the moment they were
// sent, so TTFT holds the way.
std::unique_ptr<RequestSource> through_frontend(std::unique_ptr<RequestSource> clients, const FrontCosts& costs);

}  // namespace foretoken
