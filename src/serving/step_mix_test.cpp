#include "serving/step_mix.h"

#include <gtest/gtest.h>

#include "base/simulated_time.h"

namespace foretoken {
namespace {

TEST(StepMix, time_is_shared_out_by_kind_and_nothing_is_lost) {
  StepMix mix;
  mix.step_ran({.begin = 0, .end = to_picoseconds(Seconds(1)), .prefill_tokens = 100, .running = 1});
  mix.step_ran({.begin = to_picoseconds(Seconds(1)),
                .end = to_picoseconds(Seconds(4)),
                .repeats = 10,
                .decode_tokens = 4,
                .decode_context_tokens = 4 * 100,
                .running = 4});
  mix.step_ran({.begin = to_picoseconds(Seconds(4)),
                .end = to_picoseconds(Seconds(6)),
                .prefill_tokens = 50,
                .decode_tokens = 6,
                .decode_context_tokens = 6 * 50,
                .running = 7});
  EXPECT_DOUBLE_EQ(mix.busy_seconds(), 6);
  for (const StepShare& share : mix.shares()) {
    const StepRequest typical = share.typical();
    EXPECT_EQ(typical.phase, share.phase);
    if (share.phase == StepPhase::prefill) {
      EXPECT_EQ(share.steps, 1);
      EXPECT_EQ(typical.batch, 1);
      EXPECT_EQ(typical.input_len, 100);
      EXPECT_EQ(typical.context_len, 0);
    } else if (share.phase == StepPhase::decode) {
      EXPECT_EQ(share.steps, 10);
      EXPECT_EQ(typical.batch, 4);
      EXPECT_EQ(typical.context_len, 105) << "they grow from 100 to 109";
    } else {
      EXPECT_EQ(typical.batch, 7);
      EXPECT_EQ(typical.prompts, 1);
      EXPECT_EQ(typical.input_len, 50);
      EXPECT_EQ(typical.context_len, 50);
    }
  }
}

}  // namespace
}  // namespace foretoken
