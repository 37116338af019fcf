#include "compose/edge/edge_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compose/edge/edge_advice.h"
#include "kernel/edge/edge_predictor_file.h"
#include "model/onnx/test_graphs.h"

namespace foretoken::edge_model_test {

EdgePredictor shipped_predictor() {
  return read_edge_predictor(FORETOKEN_SOURCE_DIR "/data/edge/devices/neoverse_v1_ort.json");
}

EdgeLowering lowered(const OnnxGraph& graph) {
  return lower_edge(graph, read_fusion_rules(FORETOKEN_SOURCE_DIR "/data/edge/fusion/onnxruntime.json"));
}

TEST(EdgeModel, steps_kinds_and_calls_add_up_to_the_whole) {
  const EdgeModelEstimate estimate =
      estimate_edge_model(lowered(transformer_network(2).graph({.bind = {{"batch", 1}}})), shipped_predictor());
  double steps = estimate.call_seconds + estimate.dispatch_seconds, kinds = steps, sure = steps;
  for (const EdgeStepTime& time : estimate.steps) steps += time.seconds.value;
  for (const EdgeKindTime& time : estimate.kinds) kinds += time.seconds;
  for (const auto& [kind, seconds] : estimate.seconds_by_confidence) sure += seconds;
  EXPECT_DOUBLE_EQ(steps, estimate.seconds.value);
  EXPECT_DOUBLE_EQ(kinds, estimate.seconds.value);
  EXPECT_DOUBLE_EQ(sure, estimate.seconds.value);
  EXPECT_LT(estimate.seconds.low, estimate.seconds.value);
  EXPECT_GT(estimate.seconds.high, estimate.seconds.value);
}

TEST(EdgeModel, a_larger_batch_takes_longer_but_shares_the_call) {
  const EdgeLowering lowering = lowered(block_network(2, 2).graph({.bind = {{"batch", 1}}}));
  const EdgePredictor predictor = shipped_predictor();
  double before = 0, each = 1e9;
  for (const int64_t times : {1, 2, 4, 8}) {
    const double seconds = estimate_edge_model(lowering, predictor, {.batch_times = times}).seconds.value;
    EXPECT_GT(seconds, before);
    EXPECT_LT(seconds / static_cast<double>(times), each);
    before = seconds;
    each = seconds / static_cast<double>(times);
  }
}

TEST(EdgeModel, narrow_formats_have_wide_intervals_from_what_they_allow_to_the_fp32_time) {
  const EdgePredictor predictor = shipped_predictor();
  const auto seconds = [&](Scheme scheme) {
    EdgeLowering lowering;
    const EdgeKernel kernel = edge_product(EdgeKernelKind::gemv, {.k = 1024, .n = 4096});
    lowering.steps.push_back({.name = "product", .calls = {{.kernel = kernel, .scheme = scheme}}});
    return estimate_edge_model(lowering, predictor).steps.front().seconds;
  };
  const Estimate fp32 = seconds(Scheme::fp32), int8 = seconds(Scheme::int8), int4 = seconds(Scheme::int4_wo);
  EXPECT_DOUBLE_EQ(int8.value, fp32.value / 2);
  EXPECT_DOUBLE_EQ(int8.low, fp32.low / 4);
  EXPECT_DOUBLE_EQ(int8.high, fp32.high);
  EXPECT_EQ(int8.kind, Confidence::extrapolated);
  EXPECT_LT(int4.value, int8.value);
  EXPECT_LT(int4.low, 0.14 * fp32.low);
}

TEST(EdgeModel, kernels_that_stand_in_for_others_have_intervals_twice_as_wide) {
  const EdgePredictor predictor = shipped_predictor();
  const auto seconds = [&](bool is_stand_in) {
    const EdgeKernel kernel = edge_product(EdgeKernelKind::gemv, {.k = 1024, .n = 1000});
    EdgeLowering lowering;
    lowering.steps.push_back({.name = "product", .calls = {{.kernel = kernel, .is_stand_in = is_stand_in}}});
    return estimate_edge_model(lowering, predictor).steps.front().seconds;
  };
  const Estimate own = seconds(false), other = seconds(true);
  EXPECT_EQ(own.kind, Confidence::interpolated);
  EXPECT_EQ(other.kind, Confidence::extrapolated);
  EXPECT_DOUBLE_EQ(other.value, own.value);
  EXPECT_NEAR(std::log(other.high / other.low), 2 * std::log(own.high / own.low), 1e-9);
}

EdgePredictor without_narrow_kernels(EdgePredictor predictor) {
  std::erase_if(predictor.kinds, [](const auto& own) { return is_int8(own.first) || is_int4(own.first); });
  return predictor;
}

TEST(EdgeModel, int8_is_priced_by_its_own_kernels_where_a_sweep_measured_them) {
  EdgePredictor predictor = without_narrow_kernels(shipped_predictor());
  EdgeLowering lowering;
  const EdgeKernel kernel = edge_product(EdgeKernelKind::gemv, {.k = 1024, .n = 4096});
  for (const Scheme scheme : {Scheme::fp32, Scheme::int8, Scheme::int8_wo})
    lowering.steps.push_back({.name = "product", .calls = {{.kernel = kernel, .scheme = scheme}}});
  EXPECT_EQ(with_measured_formats(lowering, predictor).notes.size(), 1u);

  // A sweep whose int8 kernels take a third of the time.
  EdgeKindPrices prices = predictor.kinds.at(EdgeKernelKind::gemv);
  for (double& price : prices.prices_ns) price /= 3;
  predictor.kinds[EdgeKernelKind::int8_gemv] = prices;
  const EdgeLowering measured = with_measured_formats(lowering, predictor);
  ASSERT_EQ(measured.notes.size(), 1u);  // of the weights alone in int8, which multiply in fp32
  EXPECT_NE(measured.notes.front().find(": 1 step,"), std::string::npos) << measured.notes.front();
  const EdgeModelEstimate estimate = estimate_edge_model(measured, predictor);
  const Estimate &fp32 = estimate.steps[0].seconds, &int8 = estimate.steps[1].seconds;
  EXPECT_LT(int8.value, 0.5 * fp32.value);
  EXPECT_NEAR(int8.high / int8.low, fp32.high / fp32.low, 1e-9);
  EXPECT_EQ(int8.kind, fp32.kind);
  // Twice the rows of it are a matrix, priced as the nearest int8 kind that was measured or not at all.
  EXPECT_EQ(with_batch_times(measured.steps[1].calls[0].kernel, 2).kind, EdgeKernelKind::int8_linear);
}

TEST(EdgeModel, a_step_of_a_language_model_is_priced_operator_by_operator) {
  const std::vector<Operator> operators = {
      {.name = "norm", .count = 2, .shape = NormShape{.rows = 1, .width = 512}},
      {.name = "qkv_proj", .count = 2, .shape = GemmShape{.m = 1, .n = 1536, .k = 512, .scheme = Scheme::int4_wo}},
      {.name = "attention",
       .count = 2,
       .shape =
           AttentionShape{.phase = AttentionPhase::decode, .heads = 8, .kv_heads = 8, .head_dim = 64, .kv_len = 100}},
      {.name = "tp_all_reduce", .count = 2, .shape = CollectiveShape{}}};
  const EdgeLowering measured = with_measured_formats(lower_edge_step(operators), shipped_predictor());
  ASSERT_EQ(measured.steps.size(), 3u);
  EXPECT_EQ(measured.steps[1].calls.front().kernel.kind, EdgeKernelKind::int4_gemv);
  EXPECT_EQ(with_batch_times(measured.steps[1].calls.front().kernel, 2).kind, EdgeKernelKind::int4_linear);
  EXPECT_EQ(estimate_edge_model(measured, shipped_predictor()).steps[1].seconds.kind, Confidence::interpolated);
  const EdgePredictor predictor = without_narrow_kernels(shipped_predictor());
  const EdgeLowering lowering = with_measured_formats(lower_edge_step(operators), predictor);
  ASSERT_EQ(lowering.steps.size(), 3u);
  EXPECT_EQ(lowering.steps[1].calls.front().kernel.kind, EdgeKernelKind::gemv);
  EXPECT_EQ(lowering.steps[1].calls.front().scheme, Scheme::int4_wo);
  EXPECT_EQ(lowering.steps[2].calls.size(), 3u);
  ASSERT_EQ(lowering.notes.size(), 1u);
  EXPECT_NE(lowering.notes.front().find("not measured on this device"), std::string::npos);
  const EdgeModelEstimate estimate = estimate_edge_model(lowering, predictor);
  EXPECT_EQ(estimate.steps.size(), 3u);
  EXPECT_GT(estimate.seconds.value, estimate.steps[1].seconds.value);
}

TEST(EdgeModel, threads_that_nobody_measured_are_between_all_work_divided_and_none) {
  const EdgeLowering lowering = lowered(block_network(2, 2).graph({.bind = {{"batch", 1}}}));
  const EdgePredictor predictor = shipped_predictor();
  const Estimate one = estimate_edge_model(lowering, predictor).seconds;
  const Estimate four = estimate_edge_model(lowering, predictor, {.threads = 4}).seconds;
  EXPECT_EQ(four.kind, Confidence::extrapolated);
  EXPECT_LT(four.value, one.value);
  EXPECT_GT(four.value, one.value / 4);
  EXPECT_LT(four.low, one.low);
  EXPECT_DOUBLE_EQ(four.high, one.high);
  // Not nearly perfect: half way, as a logarithm, for what divides.
  EXPECT_GT(four.value, one.value / 2.01);
  ASSERT_TRUE(unmeasured_threads_note(predictor, 4));
  EXPECT_NE(unmeasured_threads_note(predictor, 4)->find("4 threads was not measured"), std::string::npos);
  EXPECT_FALSE(unmeasured_threads_note(predictor, 1));
  EXPECT_FALSE(unmeasured_threads_note(predictor, 0));
}

TEST(EdgeModel, on_threads_single_rows_divide_too_and_nothing_begins_below_its_least_time) {
  const EdgePredictor predictor = shipped_predictor();
  EdgeLowering lowering;
  const EdgeKernel kernel = edge_product(EdgeKernelKind::gemv, {.k = 2048, .n = 2048});
  lowering.steps.push_back({.name = "product", .calls = {{.kernel = kernel, .scheme = Scheme::bf16}}});
  const EdgeStepTime one = estimate_edge_model(lowering, predictor).steps.front();
  const EdgeStepTime four = estimate_edge_model(lowering, predictor, {.threads = 4}).steps.front();
  EXPECT_DOUBLE_EQ(four.seconds.value, one.seconds.value / 2);
  EXPECT_DOUBLE_EQ(four.least_seconds, one.least_seconds / 4);
  EXPECT_GE(four.seconds.low, std::min(four.least_seconds, four.seconds.value));
}

TEST(EdgeModel, a_sweep_that_stands_for_other_hosts_has_wider_intervals) {
  const EdgeLowering lowering = lowered(block_network(2, 2).graph({.bind = {{"batch", 1}}}));
  EdgePredictor predictor = shipped_predictor();
  const Estimate own = estimate_edge_model(lowering, predictor).seconds;
  predictor.host_spread = 0.08;
  const Estimate others = estimate_edge_model(lowering, predictor).seconds;
  EXPECT_DOUBLE_EQ(others.value, own.value);
  EXPECT_GT(others.high / others.value, own.high / own.value);
  EXPECT_LT(others.high / others.value, own.high / own.value * 1.084);
}

TEST(EdgeModel, the_shipped_sweep_knows_two_threads) {
  const EdgePredictor predictor =
      read_edge_predictor(FORETOKEN_SOURCE_DIR "/data/edge/devices/neoverse_v1_ort_node.json");
  const EdgeLowering lowering = lowered(transformer_network(2).graph({.bind = {{"batch", 1}}}));
  const auto seconds = [&](int64_t batch, int64_t threads) {
    return estimate_edge_model(lowering, predictor, {.batch_times = batch, .threads = threads}).seconds;
  };
  EXPECT_FALSE(unmeasured_threads_note(predictor, 2));
  // Its kernels are too small to wake a thread for, until the batch is large.
  EXPECT_DOUBLE_EQ(seconds(1, 2).value, seconds(1, 1).value);
  EXPECT_LT(seconds(256, 2).value, seconds(256, 1).value);
  EXPECT_GT(seconds(256, 2).value, seconds(256, 1).value / 2);
  EXPECT_LT(seconds(256, 2).high / seconds(256, 2).low, 3);
}

TEST(EdgeModel, threads_that_were_measured_have_the_speedups_of_their_kinds) {
  const EdgeLowering lowering = lowered(block_network(2, 2).graph({.bind = {{"batch", 1}}}));
  EdgePredictor predictor = shipped_predictor();
  const Estimate one = estimate_edge_model(lowering, predictor).seconds;
  EdgeThreadScaling scaling{.threads = 4};
  for (const auto& [kind, prices] : predictor.kinds) scaling.kinds[kind] = {.times = 2.5, .half_width = 0.1};
  predictor.thread_scaling = {scaling};
  const EdgeModelEstimate four = estimate_edge_model(lowering, predictor, {.threads = 4});
  const double call = four.call_seconds;  // starts on one thread
  EXPECT_NEAR(four.seconds.value - call, (one.value - call) / 2.5, 0.02 * one.value);
  EXPECT_EQ(four.seconds.kind, one.kind);
  EXPECT_LT(four.seconds.high, one.high);
  // Three threads were not measured.
  EXPECT_EQ(estimate_edge_model(lowering, predictor, {.threads = 3}).seconds.kind, Confidence::extrapolated);
}

TEST(EdgeModel, flops_by_kind_are_those_of_the_graph) {
  for (const OnnxTestGraph& test : {block_network(2, 2), transformer_network(2)}) {
    const EdgeLowering lowering = lowered(test.graph({.bind = {{"batch", 1}}}));
    double by_graph = 0, by_kind = 0;
    for (const EdgeStep& step : lowering.steps) by_graph += step.calls.empty() ? 0 : step.flops.value();
    for (const EdgeKindTime& time : estimate_edge_model(lowering, shipped_predictor(), {.batch_times = 2}).kinds) {
      by_kind += time.work.flops.value();
    }
    EXPECT_NEAR(by_kind, 2 * by_graph, 1e-9 * by_graph);
  }
}

TEST(EdgeModel, an_average_pool_priced_as_a_max_pool_is_extrapolated) {
  const auto confidence = [](const std::string& operation) {
    OnnxTestGraph test;
    test.output(test.node(operation, {test.input("x", {1, 32, 32, 32})},
                          {with("kernel_shape", {2, 2}), with("strides", {2, 2})}));
    return estimate_edge_model(lowered(test.graph()), shipped_predictor()).steps.at(0).seconds.kind;
  };
  EXPECT_EQ(confidence("MaxPool"), Confidence::interpolated);
  EXPECT_EQ(confidence("AveragePool"), Confidence::extrapolated);
}

TEST(EdgeModel, no_kernel_beats_its_roofline) {
  const EdgePredictor predictor = shipped_predictor();
  const EdgeRoofline roofline = edge_roofline(predictor);
  EXPECT_GT(roofline.flops_per_second, 1e9);
  EXPECT_GT(roofline.bytes_per_second, 1e9);
  const EdgeModelEstimate estimate =
      estimate_edge_model(lowered(block_network(4, 4).graph({.bind = {{"batch", 8}}})), predictor);
  for (const EdgeStepTime& time : estimate.steps)
    EXPECT_LE(time.least_seconds, time.seconds.value) << time.largest.name;
}

TEST(EdgeModel, energy_follows_from_power_where_that_is_known) {
  const EdgeLowering lowering = lowered(block_network(1, 1).graph({.bind = {{"batch", 1}}}));
  EdgePredictor predictor = shipped_predictor();
  EXPECT_FALSE(estimate_edge_model(lowering, predictor).joules);
  predictor.busy_watts = 2;
  const EdgeModelEstimate estimate = estimate_edge_model(lowering, predictor);
  ASSERT_TRUE(estimate.joules);
  EXPECT_DOUBLE_EQ(estimate.joules->value, 2 * estimate.seconds.value);
}

TEST(EdgeModel, tensors_inside_a_step_take_no_memory) {
  OnnxTestGraph test;
  const std::string x = test.input("x", {1, 8, 10, 10});
  test.output(test.node("Relu", {add_conv(test, x, 8, 8, 1)}));
  const OnnxGraph graph = test.graph();
  const EdgeMemory memory = edge_memory(graph, lowered(graph));
  EXPECT_EQ(memory.activations.value(), 4 * (800 + 800));
  EXPECT_EQ(memory.weights.value(), 4 * (64 + 8));
}

TEST(EdgeAdvice, depthwise_convolutions_are_named_where_they_take_the_time) {
  OnnxTestGraph test;
  test.output(add_conv(test, test.input("x", {1, 64, 56, 56}), 64, 64, 3, 1, 64));
  const EdgeLowering lowering = lowered(test.graph());
  const EdgePredictor predictor = shipped_predictor();
  const std::vector<EdgeAdvice> advice = edge_advice(lowering, predictor, estimate_edge_model(lowering, predictor));
  ASSERT_FALSE(advice.empty());
  EXPECT_NE(advice.front().text.find("depthwise"), std::string::npos);
}

}  // namespace foretoken::edge_model_test
