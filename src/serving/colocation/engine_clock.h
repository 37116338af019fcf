// The time of an engine that does not always get on at full speed.
#pragma once

#include <cstddef>
#include <deque>

#include "base/simulated_time.h"

namespace foretoken {

// An engine that shares its device lives in a time of its own, in which its steps take as long as alone. This clock
// says how fast that time goes by: piece by piece at a constant rate, 0 = it stands still.
class EngineClock {
 public:
  // From `wall` on; never before the last change.
  void set_rate(double rate, Picoseconds wall);
  double rate() const { return pieces_.back().rate; }
  Picoseconds last_change() const { return pieces_.back().wall; }

  // What it shows at `wall`, at or after the last change.
  Picoseconds engine_time(Picoseconds wall) const;
  // When it will show `engine` if the rate stays; end_of_time where it never will.
  Picoseconds when(Picoseconds engine) const;
  // The engine handled what was due at `engine`: it shows that now, without rounding.
  void correct(Picoseconds engine, Picoseconds wall);

  // When it first showed `engine`, and when last: something that ended then, and something that began.
  Picoseconds first_shown(Picoseconds engine) const;
  Picoseconds last_shown(Picoseconds engine) const;
  // Times before this are not asked for any more.
  void forget_before(Picoseconds engine);
  size_t pieces() const { return pieces_.size(); }

 private:
  struct Piece {
    Picoseconds engine = 0, wall = 0;  // where it begins
    double rate = 1;
    Picoseconds wall_of(Picoseconds time) const;
  };
  std::deque<Piece> pieces_ = {{}};
};

}  // namespace foretoken
