#include "serving/serving_run.h"

#include <gtest/gtest.h>

#include "serving/load/synthetic.h"
#include "serving/speculation/usual_acceptance.h"
#include "serving/test_support.h"

namespace foretoken::serving_run_test {

class UncertainTimes final : public StepTimes {
 public:
  Estimate step_seconds(const StepBatch& batch) override {
    const double seconds = 0.01 + 1e-5 * static_cast<double>(batch.new_tokens());
    return {.value = seconds, .low = 0.9 * seconds, .high = 1.2 * seconds};
  }
};

ServingRunRequest small_run(StepTimes& times) {
  ServingRunRequest request;
  request.config.replicas = {{.options = {.num_gpu_blocks = 4000}, .times = &times}};
  request.load = [](uint64_t seed) {
    return synthetic_load({.rate = 5, .count = 100}, uniform_lengths({50, 200}, {10, 40}, seed), {}, seed);
  };
  return request;
}

double tpot(const ServingMetrics& metrics) {
  return metrics.tpot.mean_ms;
}

TEST(ServingRun, intervals_hold_the_value_and_follow_the_step_times) {
  UncertainTimes times;
  const ServingRun run = run_serving(small_run(times));
  const Headline headline = run.headline(tpot);
  EXPECT_LT(headline.low, headline.value);
  EXPECT_GT(headline.high, headline.value);
  EXPECT_NEAR(headline.low, 0.9 * headline.value, 0.03 * headline.value);
  EXPECT_NEAR(headline.high, 1.2 * headline.value, 0.03 * headline.value);
}

TEST(ServingRun, seeds_widen_the_interval) {
  UncertainTimes times;
  ServingRunRequest request = small_run(times);
  const Headline alone = run_serving(request).headline(tpot);
  request.more_seeds = 4;
  const ServingRun run = run_serving(request);
  ASSERT_EQ(run.other_seeds.size(), 4U);
  const Headline wider = run.headline(tpot);
  EXPECT_EQ(wider.value, alone.value);
  EXPECT_LT(wider.low, alone.low);
  EXPECT_GT(wider.high, alone.high);
}

TEST(ServingRun, no_interval_reaches_below_zero) {
  ServingRun run;
  run.metrics.tpot.mean_ms = 1;
  for (const double other : {0.0, 5.0, 9.0}) run.other_seeds.emplace_back().tpot.mean_ms = other;
  const Headline headline = run.headline(tpot);
  EXPECT_EQ(headline.low, 0);
  EXPECT_GT(headline.high, 5);
}

TEST(ServingRun, without_uncertainty_the_interval_is_a_point) {
  LinearTimes times({});
  const Headline headline = run_serving(small_run(times)).headline(tpot);
  EXPECT_EQ(headline.low, headline.value);
  EXPECT_EQ(headline.high, headline.value);
}

TEST(ServingRun, observers_see_the_run_itself_only) {
  LinearTimes times({});
  ServingRunRequest request = small_run(times);
  RecordedRun recorded;
  request.observers = {&recorded};
  request.more_seeds = 1;
  const ServingRun run = run_serving(request);
  EXPECT_EQ(recorded.requests.size(), 100U);
  EXPECT_FALSE(run.series.empty());
}

TEST(ServingRun, an_unknown_acceptance_reaches_the_intervals_of_tpot_and_throughput) {
  LinearTimes times({});
  ServingRunRequest request = small_run(times);
  const UnknownAcceptance usual = usual_acceptance(draft_method("mtp"), 3);
  Speculation& speculation = request.config.replicas.front().options.speculation;
  speculation = {.draft_tokens = 3, .verified_tokens = 3, .acceptance = usual.value};
  const Headline known = run_serving(request).headline(tpot);
  EXPECT_EQ(known.low, known.high);
  speculation.unknown_acceptance = {usual.low, usual.high};
  const ServingRun run = run_serving(request);
  ASSERT_EQ(run.at_acceptance.size(), 2U);
  const Headline unknown = run.headline(tpot);
  EXPECT_EQ(unknown.value, known.value);
  EXPECT_LT(unknown.low, 0.95 * unknown.value);
  EXPECT_GT(unknown.high, 1.05 * unknown.value);
  request.step_bounds = false;
  EXPECT_TRUE(run_serving(request).at_acceptance.empty());
}

TEST(ServingRun, an_unknown_cost_of_sending_widens_the_interval_of_ttft_where_it_matters) {
  LinearTimes times({});
  ServingRunRequest request = small_run(times);
  FrontCosts& front = request.config.replicas.front().front;
  front = {.piece = Seconds(8e-3), .piece_low = Seconds(6e-3), .piece_high = Seconds(12e-3)};
  const ServingRun busy = run_serving(request);
  EXPECT_EQ(busy.at_sending.size(), 2U);
  const Headline ttft = busy.headline([](const ServingMetrics& metrics) { return metrics.ttft.mean_ms; });
  EXPECT_LT(ttft.low, 0.9 * ttft.value);
  EXPECT_GT(ttft.high, 1.1 * ttft.value);
  front = {.piece = Seconds(8e-5), .piece_low = Seconds(6e-5), .piece_high = Seconds(12e-5)};
  EXPECT_TRUE(run_serving(request).at_sending.empty()) << "nobody waits for a process that is mostly idle";
}

TEST(ServingRun, doubt_about_first_tokens_widens_the_intervals_of_ttft_and_e2el_alone) {
  LinearTimes times({});
  ServingRunRequest request = small_run(times);
  request.config.replicas.front().first_token_doubt = {.low = 0.5, .high = 3};
  const ServingRun run = run_serving(request);
  const Headline ttft = run.headline([](const ServingMetrics& metrics) { return metrics.ttft.mean_ms; });
  EXPECT_DOUBLE_EQ(ttft.low, 0.5 * ttft.value);
  EXPECT_DOUBLE_EQ(ttft.high, 3 * ttft.value);
  const Headline e2el = run.headline([](const ServingMetrics& metrics) { return metrics.e2el.percentiles_ms.front(); });
  const double last_ttft = run.metrics.ttft.percentiles_ms.front();
  EXPECT_NEAR(e2el.high - e2el.value, 2 * last_ttft, 1e-9 * e2el.value);
  EXPECT_EQ(run.headline(tpot).high, run.headline(tpot).value);
}

}  // namespace foretoken::serving_run_test
