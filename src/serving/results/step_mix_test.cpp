#include "serving/results/step_mix.h"

#include <gtest/gtest.h>

#include "base/simulated_time.h"

namespace foretoken::step_mix_test {

TEST(StepMix, time_is_shared_out_by_kind_and_nothing_is_lost) {
  StepMix mix;
  mix.step_ran({.begin = 0,
                .end = to_picoseconds(Seconds(1)),
                .prefill_tokens = 100,
                .prompts = 4,
                .prompt_context_tokens = 4 * 30,
                .running = 4});
  mix.step_ran({.begin = to_picoseconds(Seconds(1)),
                .end = to_picoseconds(Seconds(4)),
                .repeats = 10,
                .decode_tokens = 4,
                .decode_context_tokens = 4 * 100,
                .running = 4});
  mix.step_ran({.begin = to_picoseconds(Seconds(4)),
                .end = to_picoseconds(Seconds(6)),
                .prefill_tokens = 50,
                .prompts = 2,
                .prompt_context_tokens = 80,
                .decode_tokens = 6,
                .decode_context_tokens = 6 * 50,
                .running = 8});
  EXPECT_DOUBLE_EQ(mix.busy_seconds(), 6);
  for (const StepShare& share : mix.shares()) {
    const StepRequest typical = share.typical();
    EXPECT_EQ(typical.phase, share.phase);
    if (share.phase == StepPhase::prefill) {
      EXPECT_EQ(share.steps, 1);
      EXPECT_EQ(typical.batch, 4) << "prompts of one step stay apart: attention grows with the square of one";
      EXPECT_EQ(typical.input_len, 25);
      EXPECT_EQ(typical.context_len, 30) << "what earlier chunks left in the cache";
    } else if (share.phase == StepPhase::decode) {
      EXPECT_EQ(share.steps, 10);
      EXPECT_EQ(typical.batch, 4);
      EXPECT_EQ(typical.context_len, 105) << "they grow from 100 to 109";
    } else {
      EXPECT_EQ(typical.batch, 8);
      EXPECT_EQ(typical.prompts, 2);
      EXPECT_EQ(typical.input_len, 25);
      EXPECT_EQ(typical.prompt_context_len, 40);
      EXPECT_EQ(typical.context_len, 50);
    }
  }
}

TEST(StepMix, classes_and_slices_add_up_to_all_steps) {
  StepMix mix;
  Picoseconds now = 0;
  double decodes = 0;
  for (int64_t i = 1; i <= 3000; ++i) {
    const Picoseconds end = now + to_picoseconds(Seconds(1e-3 * static_cast<double>(1 + i % 7)));
    mix.step_ran({.begin = now,
                  .end = end,
                  .repeats = i % 5 == 0 ? 3 : 1,
                  .prefill_tokens = i % 3 == 0 ? i : 0,
                  .prompts = i % 3 == 0 ? 1 : 0,
                  .decode_tokens = i % 40,
                  .decode_context_tokens = i % 40 * i,
                  .running = 4});
    decodes += static_cast<double>(i % 40 * (i % 5 == 0 ? 3 : 1));
    now = end;
  }
  double seconds = 0, sliced = 0, tokens = 0;
  for (const StepClass& one : mix.classes()) {
    seconds += one.share.seconds;
    tokens += one.share.decode_tokens;
    EXPECT_LE(one.slice_seconds.size(), 64u);
    for (const double slice : one.slice_seconds) sliced += slice;
  }
  EXPECT_GT(mix.classes().size(), 50u);
  EXPECT_LT(mix.classes().size(), 1000u);
  EXPECT_NEAR(seconds, mix.busy_seconds(), 1e-9);
  EXPECT_NEAR(sliced, mix.busy_seconds(), 1e-9);
  EXPECT_DOUBLE_EQ(tokens, decodes);
  EXPECT_LE(to_seconds(now).value(), 64 * mix.slice_seconds());
  EXPECT_GT(to_seconds(now).value(), 32 * mix.slice_seconds());
}

}  // namespace foretoken::step_mix_test
