#include "serving/results/metrics.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/simulated_time.h"
#include "base/statistics.h"
#include "serving/results/priority_metrics.h"
#include "serving/results/time_series.h"
#include "serving/test_support.h"

namespace foretoken::metrics_test {

RequestRecord completed(double arrival, double first, double last, int64_t outputs) {
  return {.input_tokens = 100,
          .output_tokens = outputs,
          .arrival = to_picoseconds(Seconds(arrival)),
          .queued = to_picoseconds(Seconds(arrival)),
          .scheduled = to_picoseconds(Seconds(arrival)),
          .first_token = to_picoseconds(Seconds(first)),
          .last_token = to_picoseconds(Seconds(last))};
}

TEST(Metrics, requests_without_output_yield_no_token_in_any_second) {
  MetricsCollector metrics(0, {});
  metrics.request_ended(completed(0, 0.5, 0.5, 0));
  EXPECT_EQ(metrics.metrics({99}).peak_output_tokens_per_s, 0);
  metrics.request_ended(completed(0, 0.5, 0.5, 1));
  EXPECT_EQ(metrics.metrics({99}).peak_output_tokens_per_s, 1);
}

TEST(PriorityMetrics, requests_are_counted_with_their_own_kind) {
  PriorityMetrics metrics(2);
  for (const int32_t priority : {3, 0, 3, 7}) {
    RequestRecord record = completed(1, 1.5 + priority, 2.5 + priority, 11);
    record.priority = priority;
    metrics.request_ended(record);
  }
  metrics.request_ended({.outcome = RequestOutcome::rejected});
  const std::vector<PriorityLatencies> all = metrics.latencies({99});
  ASSERT_EQ(all.size(), 2U) << "no more kinds than asked for";
  EXPECT_EQ(all[0].priority, 0);
  EXPECT_EQ(all[0].completed, 1);
  EXPECT_DOUBLE_EQ(all[0].ttft.mean_ms, 500);
  EXPECT_DOUBLE_EQ(all[1].ttft.mean_ms, 3500);
  EXPECT_DOUBLE_EQ(all[1].tpot.mean_ms, 100);
  EXPECT_EQ(all[1].completed, 2);
}

TEST(LatencyDistribution, few_values_are_summed_up_exactly) {
  for (const uint64_t most_times : {1, 2, 6}) {  // few and many equal ones
    RandomStream random(3, "latencies");
    std::vector<double> values;
    LatencyDistribution distribution;
    for (int i = 0; i < 5000; ++i) {
      const Picoseconds value = to_picoseconds(Seconds(random.lognormal(-3, 1)));
      const auto times = static_cast<int64_t>(1 + random.below(most_times));
      distribution.add(value, times);
      values.insert(values.end(), static_cast<size_t>(times), to_seconds(value).value());
    }
    EXPECT_TRUE(distribution.is_exact());
    EXPECT_NEAR(distribution.mean_seconds(), mean(values), 1e-12);
    EXPECT_NEAR(distribution.deviation_seconds(), standard_deviation(values), 1e-12);
    const std::vector<double> shares = {0.5, 0.9, 0, 0.25, 0.9, 0.99, 1, 0.001};
    const std::vector<double> quantiles = distribution.quantiles_seconds(shares);
    for (size_t i = 0; i < shares.size(); ++i) EXPECT_DOUBLE_EQ(quantiles[i], quantile(values, shares[i])) << shares[i];
  }
}

TEST(LatencyDistribution, many_values_stay_within_the_stated_error) {
  RandomStream random(5, "latencies");
  LatencyDistribution exact, sketch(10);
  for (int i = 0; i < 50000; ++i) {
    const Picoseconds value = to_picoseconds(Seconds(random.lognormal(-6, 3)));
    exact.add(value);
    sketch.add(value);
  }
  ASSERT_FALSE(sketch.is_exact());
  EXPECT_EQ(sketch.count(), exact.count());
  EXPECT_DOUBLE_EQ(sketch.mean_seconds(), exact.mean_seconds());
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.9999}) {
    const std::vector<double> shares = {share};
    const double expected = exact.quantiles_seconds(shares)[0];
    EXPECT_NEAR(sketch.quantiles_seconds(shares)[0], expected, 0.0005 * expected) << share;
  }
}

TEST(LatencyDistribution, small_and_huge_values_have_a_place) {
  LatencyDistribution sketch(0);
  for (const Picoseconds value :
       {Picoseconds{0}, Picoseconds{1}, Picoseconds{2047}, Picoseconds{2048}, Picoseconds{9'000'000'000'000'000'000}}) {
    LatencyDistribution one(0);
    one.add(value);
    const std::vector<double> middle = {0.5};
    EXPECT_NEAR(one.quantiles_seconds(middle)[0], to_seconds(value).value(), 0.0005 * to_seconds(value).value());
  }
  EXPECT_EQ(sketch.quantiles_seconds(std::vector<double>{0.5})[0], 0) << "no values";
}

TEST(Metrics, are_those_of_vllm_bench_serve) {
  MetricsCollector collector(to_picoseconds(Seconds(1)), {.ttft_ms = 600, .tpot_ms = 150});
  collector.request_ended(completed(1, 1.5, 2.5, 11));  // ttft 500 ms, tpot 100 ms
  collector.request_ended(completed(2, 3.0, 5.0, 11));  // ttft 1000 ms, tpot 200 ms
  collector.request_ended(completed(3, 3.2, 3.2, 1));   // ttft 200 ms, no tpot
  collector.request_ended({.outcome = RequestOutcome::rejected, .arrival = to_picoseconds(Seconds(4))});
  collector.token_gaps(to_picoseconds(Seconds(0.1)), 10);
  collector.token_gaps(to_picoseconds(Seconds(0.2)), 10);
  const ServingMetrics metrics = collector.metrics({99});
  EXPECT_EQ(metrics.completed, 3);
  EXPECT_EQ(metrics.rejected, 1);
  EXPECT_DOUBLE_EQ(metrics.duration_s, 4);
  EXPECT_EQ(metrics.input_tokens, 300);
  EXPECT_EQ(metrics.output_tokens, 23);
  EXPECT_DOUBLE_EQ(metrics.request_throughput, 0.75);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 23.0 / 4);
  EXPECT_DOUBLE_EQ(metrics.total_token_throughput, 323.0 / 4);
  EXPECT_DOUBLE_EQ(*metrics.goodput, 0.5) << "a request of one token has a TPOT of 0";
  EXPECT_NEAR(metrics.ttft.mean_ms, 1700.0 / 3, 1e-9);
  EXPECT_NEAR(metrics.ttft.median_ms, 500, 1e-9);
  EXPECT_NEAR(metrics.ttft.percentiles_ms[0], 500 + 0.98 * 500, 1e-6);
  EXPECT_NEAR(metrics.tpot.mean_ms, 150, 1e-9) << "the request of one token is left out";
  EXPECT_NEAR(metrics.itl.mean_ms, 150, 1e-9);
  EXPECT_NEAR(metrics.itl.deviation_ms, 50, 1e-9);
  EXPECT_NEAR(metrics.e2el.mean_ms, (1500 + 3000 + 200) / 3.0, 1e-9);
  // Seconds from the first arrival: request 1 is in flight in 0 and 1, 2 in 1 to 4, 3 in 2.
  EXPECT_EQ(metrics.peak_concurrent_requests, 2);
}

TEST(Metrics, tokens_count_in_the_second_in_which_they_come_out) {
  MetricsCollector collector(0);
  // Ten steps of 0.25 s with three tokens each: the fourth ends at 1 s, so three end in the first second.
  collector.step_ran({.begin = 0, .end = to_picoseconds(Seconds(2.5)), .repeats = 10, .decode_tokens = 3});
  EXPECT_EQ(collector.metrics({}).peak_output_tokens_per_s, 12);
  collector.step_ran(
      {.begin = to_picoseconds(Seconds(2.5)), .end = to_picoseconds(Seconds(2.9)), .repeats = 1, .decode_tokens = 9});
  EXPECT_EQ(collector.metrics({}).peak_output_tokens_per_s, 18) << "3 x 3 of the run's last steps, and 9";
}

TEST(Metrics, an_empty_run_has_no_nan) {
  const ServingMetrics metrics = MetricsCollector(0).metrics({99});
  EXPECT_EQ(metrics.request_throughput, 0);
  EXPECT_EQ(metrics.ttft.percentiles_ms[0], 0);
}

TEST(Metrics, agree_with_the_totals_of_a_simulated_run) {
  LinearTimes times({});
  SimulationConfig config;
  config.replicas = {{.options = {.num_gpu_blocks = 4000}, .times = &times}};
  ListedRequests source(random_requests(4, 300, 20, 500, 100));
  MetricsCollector collector(*source.next_arrival());
  const SimulationTotals totals = simulate(config, source, collector);
  const ServingMetrics metrics = collector.metrics({50, 99});
  EXPECT_EQ(metrics.completed, totals.completed);
  EXPECT_GT(metrics.peak_output_tokens_per_s, metrics.output_throughput);
  EXPECT_DOUBLE_EQ(metrics.ttft.percentiles_ms[0], metrics.ttft.median_ms);
  EXPECT_GE(metrics.e2el.mean_ms, metrics.ttft.mean_ms);
}

TEST(TimeSeries, sums_survive_a_doubled_interval) {
  const StepRecord steps[] = {{.begin = 0,
                               .end = to_picoseconds(Seconds(3)),
                               .repeats = 6,
                               .decode_tokens = 4,
                               .running = 4,
                               .kv_blocks_used = 10},
                              {.begin = to_picoseconds(Seconds(3)),
                               .end = to_picoseconds(Seconds(7.5)),
                               .prefill_tokens = 90,
                               .running = 2,
                               .waiting = 3}};
  for (const size_t most : {size_t{100}, size_t{2}}) {
    TimeSeries series(to_picoseconds(Seconds(1)), most);
    for (const StepRecord& step : steps) series.step_ran(step);
    double decoded = 0, prefilled = 0, running = 0;
    for (const TimePoint& point : series.points()) {
      decoded += point.decode_tokens_per_s * series.interval_s();
      prefilled += point.prefill_tokens_per_s * series.interval_s();
      running += point.running * series.interval_s();
    }
    EXPECT_LE(series.points().size(), most);
    EXPECT_NEAR(decoded, 24, 1e-9);
    EXPECT_NEAR(prefilled, 90, 1e-9);
    EXPECT_NEAR(running, 4 * 3 + 2 * 4.5, 1e-9);
  }
}

TEST(TimeSeries, blocks_grow_evenly_over_repeated_steps_and_the_most_is_that_of_the_last) {
  TimeSeries series(to_picoseconds(Seconds(1)));
  series.step_ran({.replica = 1,
                   .begin = 0,
                   .end = to_picoseconds(Seconds(4)),
                   .repeats = 100,
                   .decode_tokens = 1,
                   .kv_blocks_used = 10,
                   .kv_blocks_grown = 80});
  const std::vector<TimePoint> points = series.points();
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(points[i].kv_blocks_used, 20 + 20 * static_cast<double>(i), 1e-9);
  EXPECT_EQ(series.most_kv_blocks(), (std::vector<int64_t>{0, 90}));
}

}  // namespace foretoken::metrics_test
