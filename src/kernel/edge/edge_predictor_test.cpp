#include "kernel/edge/edge_predictor.h"

#include <gtest/gtest.h>

#include "kernel/edge/edge_test_sweep.h"
#include "kernel/test_support.h"

namespace foretoken::edge_predictor_test {

using namespace test_support;

// Of the kernels run one after the other in one call of the runtime.
Estimate model_seconds(const EdgePredictor& predictor, std::span<const EdgeKernel> kernels) {
  std::vector<Estimate> parts = {predictor.kernel_seconds({.kind = EdgeKernelKind::empty})};
  for (const EdgeKernel& kernel : kernels) parts.push_back(predictor.kernel_seconds_in_model(kernel));
  return sum_of_correlated(parts);
}

TEST(EdgePredictor, a_model_calls_the_runtime_once_and_copies_nothing_between_its_kernels) {
  EdgePredictor predictor = made_up_predictor(1);
  const EdgeKernel empty{.kind = EdgeKernelKind::empty};
  const EdgeKernel product = edge_product(EdgeKernelKind::linear, {.m = 10, .k = 700, .n = 500});
  const EdgeKernel three[] = {product, product, product};
  const double call = predictor.kernel_seconds(empty).value, one = predictor.kernel_seconds(product).value;
  EXPECT_DOUBLE_EQ(model_seconds(predictor, {}).value, call);
  EXPECT_DOUBLE_EQ(model_seconds(predictor, three).value, call + 3 * one) << "kernels timed by themselves";
  predictor.calls = EdgeCallCosts{.node_ns = 1000, .copy_near_ns = 0.5, .copy_far_ns = 0.5};
  const double own_call = predictor.kinds.at(EdgeKernelKind::linear).prices_ns.front() * 1e-9;
  const double copy = 5000 * 0.5e-9, nodes = 2 * 1000e-9;  // a product and the addition of its bias
  EXPECT_DOUBLE_EQ(model_seconds(predictor, three).value, call + 3 * (one - own_call - copy + nodes));
}

TEST(EdgePredictor, a_model_with_one_kernel_more_is_not_faster) {
  EdgePredictor predictor = made_up_predictor(1);
  predictor.calls = EdgeCallCosts{.node_ns = 1000, .copy_near_ns = 10, .copy_far_ns = 10};
  std::vector<EdgeKernel> kernels;
  double before = 0;
  for (const EdgeKernel& kernel : swept_kernels()) {
    kernels.push_back(kernel);
    const Estimate all = model_seconds(predictor, kernels);
    EXPECT_GE(all.value, before);
    EXPECT_LE(all.low, all.value);
    EXPECT_GE(all.high, all.value);
    before = all.value;
  }
}

TEST(EdgePredictor, sizes_beyond_the_sweep_are_marked_and_less_certain) {
  const EdgePredictor predictor = made_up_predictor(1);
  const Estimate inside = predictor.kernel_seconds(edge_tensor(EdgeKernelKind::gelu, {.elements = 1'000'000}));
  const Estimate beyond = predictor.kernel_seconds(edge_tensor(EdgeKernelKind::gelu, {.elements = 4'000'000'000}));
  EXPECT_EQ(inside.kind, Confidence::interpolated);
  EXPECT_EQ(beyond.kind, Confidence::extrapolated);
  EXPECT_GT(beyond.high / beyond.value, inside.high / inside.value);
  EXPECT_GT(beyond.value, 1000 * inside.value);
}

TEST(EdgePredictor, weights_that_were_evicted_between_are_part_of_the_terms_and_of_the_doubt) {
  EdgePredictor predictor = made_up_predictor(1);
  predictor.kinds[EdgeKernelKind::gemv] = predictor.kinds.at(EdgeKernelKind::linear);
  const EdgeKernel product = edge_product(EdgeKernelKind::gemv, {.k = 700, .n = 500});
  constexpr double much = 1e12;
  double terms = 0;
  for (const EdgeTerm& term : predictor.kernel_terms(product, much)) terms += term.seconds;
  const Estimate evicted = predictor.kernel_seconds_in_model(product, much);
  EXPECT_NEAR(terms / evicted.value, 1, 1e-9);
  EXPECT_GE(evicted.value, predictor.kernel_seconds_in_model(product).value);
  // A sweep without any traffic beyond that of this product alone.
  EdgeKindPrices& prices = predictor.kinds.at(EdgeKernelKind::gemv);
  prices.least.assign(prices.least.size(), 0);
  const std::vector<EdgeTerm> alone = predictor.kernel_terms(product);
  for (size_t i = 0; i < alone.size(); ++i) prices.most[i] = 1.01 * alone[i].seconds / (prices.prices_ns[i] * 1e-9);
  EXPECT_EQ(predictor.kernel_seconds_in_model(product).kind, Confidence::interpolated);
  const Estimate beyond = predictor.kernel_seconds_in_model(product, much);
  EXPECT_EQ(beyond.kind, Confidence::extrapolated);
  EXPECT_GT(beyond.high / beyond.value, evicted.high / evicted.value);
}

TEST(EdgePredictor, an_operator_starts_later_where_constants_push_the_runtime_out_of_the_cache) {
  EdgePredictor predictor = made_up_predictor(1);
  const EdgeKernel sum = edge_tensor(EdgeKernelKind::add, {.elements = 1000});
  EXPECT_EQ(predictor.start_times(1e12), 1);  // kernels timed by themselves
  predictor.calls = EdgeCallCosts{.node_ns = 300};
  EXPECT_DOUBLE_EQ(predictor.dispatch_seconds(sum), 300e-9);
  EXPECT_NEAR(predictor.dispatch_seconds(sum, 1e12), 1192e-9, 1e-11);
  EXPECT_NEAR(predictor.kernel_seconds_in_model(sum, 1e12).value - predictor.kernel_seconds_in_model(sum).value, 892e-9,
              1e-11);
  EXPECT_LT(predictor.start_times(1000), 1.01);  // a model that fits
  predictor.calls->setup_ns = 1000;              // learned from whole networks
  EXPECT_EQ(predictor.start_times(1e12), 1);
  predictor.calls = EdgeCallCosts{.node_ns = 2000};  // a sweep that was cold already
  EXPECT_EQ(predictor.start_times(1e12), 1);
}

TEST(EdgePredictor, a_tensor_operation_without_a_sweep_is_priced_by_its_bytes) {
  EdgePredictor predictor = made_up_predictor(1);
  predictor.kinds[EdgeKernelKind::traffic] = {
      .prices_ns = {1000, 1, 1}, .least = {1, 1, 1}, .most = {1, 1e9, 1e9}, .rows = 9, .half_width = 0.3};
  const EdgeKernel pool = edge_tensor(EdgeKernelKind::max_pool, {.elements = 4000, .outputs = 1000, .window = 2});
  const Estimate time = predictor.kernel_seconds(pool);
  EXPECT_NEAR(time.value, (1000 + edge_work(pool).bytes().value()) * 1e-9, 1e-15);
  EXPECT_EQ(time.kind, Confidence::extrapolated);
}

TEST(EdgePredictor, a_product_without_a_sweep_takes_the_prices_of_its_nearest_kind_or_is_refused) {
  EdgePredictor predictor = made_up_predictor(1);
  const EdgeKernel vector = edge_product(EdgeKernelKind::gemv, {.m = 1, .k = 64, .n = 500});
  EdgeKernel matrix = vector;
  matrix.kind = EdgeKernelKind::linear;
  EXPECT_EQ(predictor.kernel_seconds(vector).value, predictor.kernel_seconds(matrix).value);
  EXPECT_EQ(predictor.kernel_seconds(vector).kind, Confidence::extrapolated);
  predictor.kinds.erase(EdgeKernelKind::linear);
  EXPECT_FALSE(predictor.knows(vector));
  EXPECT_EQ(problem_of([&] { predictor.kernel_seconds(vector); }).value, "gemm1");
}

}  // namespace foretoken::edge_predictor_test
