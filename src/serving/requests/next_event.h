// Which of many replicas has the next event.
#pragma once

#include <cstddef>
#include <vector>

#include "base/simulated_time.h"

namespace foretoken {

// A tournament tree, so that an event costs log2(replicas) comparisons. Of equal times the lowest index goes first.
class NextEvent {
 public:
  explicit NextEvent(size_t replicas) {
    while (leaves_ < replicas) leaves_ *= 2;
    times_.assign(leaves_, end_of_time);
    winners_.assign(2 * leaves_, 0);
    for (size_t i = 0; i < leaves_; ++i) winners_[leaves_ + i] = i;
    for (size_t i = leaves_; i-- > 1;) winners_[i] = winner(i);
  }

  void set(size_t replica, Picoseconds when) {
    times_[replica] = when;
    for (size_t i = (leaves_ + replica) / 2; i > 0; i /= 2) winners_[i] = winner(i);
  }
  size_t replica() const { return winners_[1]; }
  Picoseconds when() const { return times_[winners_[1]]; }

 private:
  size_t winner(size_t node) const {
    const size_t left = winners_[2 * node], right = winners_[2 * node + 1];
    return times_[right] < times_[left] ? right : left;
  }

  size_t leaves_ = 1;
  std::vector<Picoseconds> times_;
  std::vector<size_t> winners_;
};

}  // namespace foretoken
