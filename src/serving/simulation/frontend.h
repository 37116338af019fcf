// The way from a client to an engine's queue.
#pragma once

#include <cstdint>

#include "base/simulated_time.h"
#include "compose/stack.h"

namespace foretoken {

// The server process in front of one engine: it reads requests one after the other, in the order they were sent.
class Frontend {
 public:
  explicit Frontend(const FrontCosts& costs);

  bool takes_time() const { return takes_time_; }
  // When the engine has a request that is sent now. Of later calls never earlier.
  Picoseconds through(int64_t input_tokens, Picoseconds now);
  // Another process takes its place, with nothing to read.
  void restart() { free_ = 0; }

 private:
  FrontCosts costs_;
  bool takes_time_;
  Picoseconds latency_;
  Picoseconds free_ = 0;  // when the process that reads requests is
};

}  // namespace foretoken
