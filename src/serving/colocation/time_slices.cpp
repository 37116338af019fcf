#include "serving/colocation/time_slices.h"

namespace foretoken {

bool TimeSlices::update(Picoseconds now) {
  if (ready_at_ && *ready_at_ <= now) ready_at_.reset();
  if (ready_at_) return false;
  if (busy_[holder_] && !turn_over_) return false;
  turn_over_ = false;
  size_t next = holder_;
  for (size_t i = 1; i <= busy_.size(); ++i) {
    next = (holder_ + i) % busy_.size();
    if (busy_[next]) break;
  }
  if (next == holder_ || !busy_[next]) return false;
  holder_ = next;
  if (switch_time_ > 0) ready_at_ = later(now, switch_time_);
  return true;
}

}  // namespace foretoken
