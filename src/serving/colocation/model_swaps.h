// Which of several models is in the device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "serving/colocation/colocation.h"
#include "serving/requests/request.h"

namespace foretoken {

// One model is awake. Requests of the others wait here; the one whose first request has waited longest is next, when
// the model that is awake has nothing to do, or after `longest_wait`: from then on no new request reaches that one
// either, and it goes to sleep when it has answered those that did (vLLM's sleep mode forgets the KV cache).
class ModelSwaps {
 public:
  explicit ModelSwaps(const Colocation& colocation);

  void arrive(Request&& request, Picoseconds now);
  // Requests that the model that is awake may have now.
  std::deque<Request> take_ready();
  size_t awake() const { return awake_; }

  // To be called after every change; `outstanding`: requests of the model that is awake that have not ended. The model
  // that was put to sleep, where one was.
  std::optional<size_t> update(Picoseconds now, int64_t outstanding);
  // When `update` has something to do without any other change.
  Picoseconds next_event() const;
  int64_t waiting() const;

 private:
  struct Waiting {
    Request request;
    Picoseconds since = 0;
  };
  std::optional<size_t> longest_waiting() const;

  const Colocation& settings_;
  Picoseconds longest_wait_;
  std::vector<std::deque<Waiting>> waiting_;  // by model
  size_t awake_ = 0;                          // or will be when the swap is through
  bool draining_ = false;
  std::optional<Picoseconds> swapped_at_;  // while models move
};

}  // namespace foretoken
