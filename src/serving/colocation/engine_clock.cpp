#include "serving/colocation/engine_clock.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace foretoken {

Picoseconds EngineClock::Piece::wall_of(Picoseconds time) const {
  if (time <= engine) return wall;
  if (rate == 0) return end_of_time;
  const double wait = std::ceil(static_cast<double>(time - engine) / rate);
  return wait >= static_cast<double>(end_of_time - wall) ? end_of_time : wall + static_cast<Picoseconds>(wait);
}

void EngineClock::set_rate(double rate, Picoseconds wall) {
  ensure(rate >= 0 && rate <= 1, "an engine is never faster than alone");
  const Picoseconds engine = engine_time(wall);
  Piece& last = pieces_.back();
  if (last.rate == rate) return;
  if (last.wall == wall) {
    last.rate = rate;
  } else {
    pieces_.push_back({.engine = engine, .wall = wall, .rate = rate});
  }
}

Picoseconds EngineClock::engine_time(Picoseconds wall) const {
  const Piece& last = pieces_.back();
  ensure(wall >= last.wall, "time never goes back");
  return last.engine + static_cast<Picoseconds>(std::floor(static_cast<double>(wall - last.wall) * last.rate));
}

Picoseconds EngineClock::when(Picoseconds engine) const {
  return pieces_.back().wall_of(engine);
}

void EngineClock::correct(Picoseconds engine, Picoseconds wall) {
  if (engine_time(wall) == engine) return;
  pieces_.push_back({.engine = engine, .wall = wall, .rate = pieces_.back().rate});
}

Picoseconds EngineClock::first_shown(Picoseconds engine) const {
  // The last piece that begins before it holds its first moment.
  const auto after = std::lower_bound(pieces_.begin(), pieces_.end(), engine,
                                      [](const Piece& piece, Picoseconds time) { return piece.engine < time; });
  if (after == pieces_.begin()) return after->wall;
  const Picoseconds end = after == pieces_.end() ? end_of_time : after->wall;
  return std::min(std::prev(after)->wall_of(engine), end);
}

Picoseconds EngineClock::last_shown(Picoseconds engine) const {
  // The last piece that does not begin after it.
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), engine,
                                      [](Picoseconds time, const Piece& piece) { return time < piece.engine; });
  if (after == pieces_.begin()) return after->wall;
  return std::prev(after)->wall_of(engine);
}

void EngineClock::forget_before(Picoseconds engine) {
  while (pieces_.size() > 1 && pieces_[1].engine < engine) pieces_.pop_front();
}

}  // namespace foretoken
