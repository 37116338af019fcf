// The way from a client to an engine's queue, and of answers back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/simulated_time.h"
#include "compose/stack.h"

namespace foretoken {

// The server's processes in front of one engine: one reads requests one after the other, in the order they were sent;
// one sends the pieces of answers, in the order they were made.
class Frontend {
 public:
  explicit Frontend(const FrontCosts& costs);

  bool takes_time() const { return takes_time_; }
  // When the engine has a request that is sent now. Of later calls never earlier.
  Picoseconds through(int64_t input_tokens, Picoseconds now);
  bool sends_pieces() const { return piece_ > 0; }
  // When clients have the last of so many pieces that a step made now. Of later calls never earlier.
  Picoseconds sent(int64_t pieces, Picoseconds made) {
    if (piece_ == 0) return made;
    sender_free_ = std::max(sender_free_, made) + pieces * piece_;
    return sender_free_;
  }
  // The same of equal steps, the first and the last of which ended then.
  struct Sent {
    Picoseconds first = 0, last = 0;  // the last piece of each
  };
  Sent sent(int64_t pieces, int64_t steps, Picoseconds first, Picoseconds last);
  // One piece takes so long.
  Picoseconds piece() const { return piece_; }
  // Other processes take their place, with nothing to read or send.
  void restart() { free_ = sender_free_ = 0; }

 private:
  FrontCosts costs_;
  bool takes_time_;
  Picoseconds latency_, piece_;
  Picoseconds free_ = 0;         // when the process that reads requests is
  Picoseconds sender_free_ = 0;  // when the process that sends answers is
};

}  // namespace foretoken
