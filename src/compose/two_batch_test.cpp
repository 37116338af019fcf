#include "compose/two_batch.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/step_estimate.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::two_batch_test {

HalfStep half(double computed, double traveled, bool low_latency) {
  HalfStep half{.layers = 20, .layer_share = 1, .low_latency = low_latency};
  half.alone = {0.2 * computed, 0.4 * computed, 0.1 * computed, 0.25 * computed, 0.05 * computed};
  half.beside = half.alone;
  half.dispatch = traveled / 3;
  half.combine = traveled * 2 / 3;
  half.serial = computed + traveled;
  return half;
}

TEST(TwoBatch, time_is_computing_or_waiting_and_neither_is_faster_than_alone) {
  for (const bool low_latency : {false, true}) {
    for (const double traveled : {0.01, 0.3, 1.0, 3.0, 20.0}) {
      const HalfStep one = half(1, traveled, low_latency);
      const TwoBatchTime time = overlap(one);
      EXPECT_NEAR(time.seconds, time.kernels + time.exposed, 1e-9);
      EXPECT_NEAR(time.kernels, 2, 1e-9);
      EXPECT_NEAR(time.exposed + time.hidden, 2 * traveled, 1e-9);
      EXPECT_LE(time.seconds, 2 * one.serial + 1e-9);
      EXPECT_GE(time.seconds, std::max(2.0, low_latency ? 0 : 2 * traveled) - 1e-9);
      EXPECT_GT(time.hidden, 0);
    }
  }
}

TEST(TwoBatch, a_step_of_many_layers_takes_what_its_layers_take) {
  for (const bool low_latency : {false, true}) {
    HalfStep few = half(1, 1.5, low_latency), many = few;
    few.layers = 8;
    many.layers = 80;
    many.alone = many.beside = {2, 4, 1, 2.5, 0.5};
    many.dispatch = 5;
    many.combine = 10;
    const double last = overlap(few).seconds;
    EXPECT_NEAR(overlap(many).seconds / last, 10, 0.5);
  }
}

TEST(TwoBatch, low_latency_dispatches_hide_behind_projections_and_combines_behind_attention) {
  HalfStep one{.layers = 10, .layer_share = 1, .low_latency = true};
  one.alone[HalfStep::attention] = 1;
  one.dispatch = 0.5;
  const double dispatched = overlap(one).hidden;
  std::swap(one.dispatch, one.combine);
  EXPECT_LT(dispatched, 1e-9);
  EXPECT_NEAR(overlap(one).exposed, 0, 0.06);  // all but the last layer's
  one.alone[HalfStep::before] = 1;
  std::swap(one.dispatch, one.combine);
  EXPECT_NEAR(overlap(one).exposed, 0, 0.06);
}

TEST(TwoBatch, kernels_that_lose_processors_and_exchanges_that_are_slowed_take_longer) {
  const HalfStep free = half(1, 0.9, false);
  HalfStep lent = free, slowed = free;
  for (double& part : lent.beside) part *= 1.2;
  slowed.slowed = 1.5;
  EXPECT_GT(overlap(lent).seconds, overlap(free).seconds);
  EXPECT_LE(overlap(lent).kernels, 1.2 * overlap(free).kernels);
  EXPECT_GT(overlap(slowed).seconds, overlap(free).seconds);
}

TEST(TwoBatch, a_step_says_what_it_hides_and_its_parts_add_up) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const KernelPredictor predictor(hardware.device("h100_sxm"));
  const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("DeepSeek-V3");
  const ParallelPlan plan{.data = 64, .expert = 64};
  for (const StepRequest& request : {StepRequest{.phase = StepPhase::prefill, .batch = 4, .input_len = 2048},
                                     StepRequest{.phase = StepPhase::prefill, .batch = 1, .input_len = 8192},
                                     StepRequest{.phase = StepPhase::decode, .batch = 512, .context_len = 2048}}) {
    const StepEstimate plain = estimate_step(model, request, plan, predictor);
    const StepEstimate step = estimate_step(model, request, plan, predictor, {}, {.two_batch_overlap = true});
    const DispatchTime& time = step.stages.at(0).time;
    EXPECT_FALSE(plain.two_batches);
    EXPECT_TRUE(step.two_batches);
    EXPECT_NEAR(time.seconds, time.kernels + time.communication + time.launch_gap + time.host_stall, 1e-12);
    EXPECT_GT(time.hidden_communication, time.communication);
    EXPECT_LT(step.seconds.value, plain.seconds.value);
    EXPECT_GT(step.seconds.value, plain.stages.at(0).time.kernels);
  }
  // One rank has nothing to hide.
  const StepRequest decode{.phase = StepPhase::decode, .batch = 64, .context_len = 64};
  EXPECT_EQ(estimate_step(model, decode, {}, predictor, {}, {.two_batch_overlap = true}).seconds.value,
            estimate_step(model, decode, {}, predictor).seconds.value);
}

TEST(TwoBatch, gaps_that_measured_kernels_hold_count_once_and_tokens_travel_in_all_gaps) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const KernelPredictor predictor(hardware.device("h100_sxm"));
  const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("DeepSeek-V3");
  const auto time = [&](double kernel_gap, double graph_gap, bool overlaps) {
    Stack stack;
    stack.dispatch = {{StepPhase::decode, Dispatch::graph}};
    stack.costs.kernel_gap = Seconds(kernel_gap);
    stack.costs.graph_gap = Seconds(graph_gap);
    const StepRequest request{.phase = StepPhase::decode, .batch = 128, .context_len = 2048};
    return estimate_step(model, request, {.data = 64, .expert = 64}, predictor, stack, {.two_batch_overlap = overlaps})
        .stages.at(0)
        .time;
  };
  const DispatchTime without = time(0, 0, true), measured = time(6e-7, 0, true);
  EXPECT_GT(measured.launch_gap, without.launch_gap);
  EXPECT_NEAR(measured.seconds, without.seconds, 1e-9);
  const DispatchTime added = time(0, 4e-6, true);
  const double gaps = added.launch_gap - without.launch_gap;
  EXPECT_NEAR(gaps, 2 * time(0, 4e-6, false).launch_gap, 0.1 * gaps) << "of either half";
  EXPECT_NEAR(added.kernels, without.kernels, 0.03 * without.kernels) << "fewer of them run beside an exchange";
  EXPECT_LT(added.communication, without.communication) << "less is left to wait for";
}

TEST(TwoBatch, without_tokens_that_travel_there_is_nothing_to_overlap) {
  Model dense, sparse;
  dense.layers.push_back({.mixer = Attention{}, .feed_forward = Mlp{.width = 8}});
  sparse.layers.push_back({.mixer = Attention{}, .feed_forward = Moe{.experts = 8, .top_k = 2, .width = 8}});
  EXPECT_NO_THROW(check_two_batches(sparse, {.data = 8, .expert = 8}));
  EXPECT_THROW(check_two_batches(sparse, {.tensor = 8, .expert = 8}), InputError);
  EXPECT_THROW(check_two_batches(dense, {.data = 8}), InputError);
}

}  // namespace foretoken::two_batch_test
