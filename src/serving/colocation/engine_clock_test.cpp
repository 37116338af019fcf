#include "serving/colocation/engine_clock.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken::engine_clock_test {

TEST(EngineClock, at_full_rate_it_shows_the_time_on_the_wall) {
  EngineClock clock;
  for (const Picoseconds time : {Picoseconds{0}, Picoseconds{17}, Picoseconds{1} << 52}) {
    EXPECT_EQ(clock.engine_time(time), time);
    EXPECT_EQ(clock.when(time), time);
    EXPECT_EQ(clock.first_shown(time), time);
    EXPECT_EQ(clock.last_shown(time), time);
  }
  EXPECT_EQ(clock.pieces(), 1u);
}

TEST(EngineClock, what_ended_when_it_stopped_and_what_began_then_lie_on_both_sides_of_the_pause) {
  EngineClock clock;
  clock.set_rate(0, 100);
  EXPECT_EQ(clock.when(101), end_of_time);
  clock.set_rate(1, 150);
  EXPECT_EQ(clock.first_shown(100), 100);
  EXPECT_EQ(clock.last_shown(100), 150);
  EXPECT_EQ(clock.when(110), 160);
}

TEST(EngineClock, it_never_runs_ahead_of_the_wall_and_past_times_stay_in_order) {
  RandomStream random(3, "rates");
  EngineClock clock;
  Picoseconds wall = 0;
  for (int i = 0; i < 500; ++i) {
    wall += 1 + static_cast<Picoseconds>(random.below(1'000'000));
    const Picoseconds before = clock.engine_time(wall);
    EXPECT_LE(before, wall);
    clock.set_rate(random.below(4) == 0 ? 0 : random.uniform(), wall);
    EXPECT_EQ(clock.engine_time(wall), before);
  }
  Picoseconds last = 0;
  for (Picoseconds engine = 0; engine <= clock.engine_time(wall); engine += 50'000) {
    const Picoseconds first = clock.first_shown(engine);
    EXPECT_GE(first, last);
    EXPECT_GE(clock.last_shown(engine), first);
    last = first;
  }
}

TEST(EngineClock, what_is_still_asked_for_survives_forgetting) {
  EngineClock clock;
  for (int i = 1; i <= 100; ++i) clock.set_rate(i % 2 == 0 ? 1 : 0.5, i * 1000);
  const Picoseconds engine = 50'000, first = clock.first_shown(engine);
  clock.forget_before(engine);
  EXPECT_LT(clock.pieces(), 60u);
  EXPECT_EQ(clock.first_shown(engine), first);
}

}  // namespace foretoken::engine_clock_test
