// Whose step runs next where engines take turns.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/simulated_time.h"

namespace foretoken {

class TimeSlices {
 public:
  TimeSlices(size_t engines, Picoseconds switch_time) : busy_(engines), switch_time_(switch_time) {}

  // An engine has steps to run, or none any more.
  void set_busy(size_t engine, bool busy) { busy_[engine] = busy; }
  // A step of the engine that has the device ended: the next one with work is due.
  void step_ended() { turn_over_ = true; }
  // To be called after every change. True when the device was given to another engine.
  bool update(Picoseconds now);

  // The engine that has the device; nothing while it changes hands.
  std::optional<size_t> holder() const { return ready_at_ ? std::nullopt : std::optional(holder_); }
  Picoseconds next_event() const { return ready_at_.value_or(end_of_time); }
  size_t next_holder() const { return holder_; }

 private:
  std::vector<bool> busy_;
  Picoseconds switch_time_;
  size_t holder_ = 0;  // or will be when the change is through
  bool turn_over_ = false;
  std::optional<Picoseconds> ready_at_;
};

}  // namespace foretoken
