#include "serving/fleet/autoscalers/list.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/fleet/scaling.h"

namespace foretoken::autoscalers_list_test {

AutoscalerSettings settings_of(std::string_view kind) {
  return {.kind = std::string(kind),
          .interval_s = 10,
          .cold_start_s = 50,
          .target = 5,
          .utilization = 1,
          .period_s = 1000,
          .capacity = [](double input, double output) { return 1000 / (input + output); }};
}

// Requests of 500 and 500 tokens: a replica serves one a second.
FleetView view_at(double now_s, double rate, int64_t serving = 1) {
  const auto arrived = static_cast<int64_t>(std::llround(rate * 10));
  return {.now_s = now_s,
          .serving = serving,
          .interval_s = 10,
          .arrived = arrived,
          .input_tokens = 500 * arrived,
          .output_tokens = 500 * arrived};
}

TEST(Autoscalers, unknown_names_suggest_the_nearest) {
  try {
    autoscaler_kind("predictve");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "predictive");
  }
}

TEST(Autoscalers, more_load_never_wants_fewer_replicas) {
  for (const AutoscalerKind& kind : autoscaler_kinds()) {
    if (kind.name == "none") continue;
    SCOPED_TRACE(kind.name);
    int64_t before = 0;
    for (int64_t load = 0; load <= 60; load += 3) {
      const std::unique_ptr<Autoscaler> fresh = kind.make(settings_of(kind.name));
      int64_t wanted = 0;
      for (int i = 0; i < 20; ++i) {
        FleetView view = view_at(10.0 * i, static_cast<double>(load));
        view.outstanding = load;
        wanted = fresh->wanted(view);
      }
      EXPECT_GE(wanted, before);
      before = wanted;
    }
    EXPECT_GT(before, 5);
  }
}

TEST(Autoscalers, a_steady_rate_wants_as_many_replicas_as_serve_it) {
  for (const std::string_view kind : {"predictive", "seasonal", "planner"}) {
    const std::unique_ptr<Autoscaler> autoscaler = autoscaler_kind(kind).make(settings_of(kind));
    int64_t wanted = 0;
    for (int i = 0; i < 150; ++i) wanted = autoscaler->wanted(view_at(10.0 * i, 6.5));
    EXPECT_EQ(wanted, 7) << kind;
  }
}

TEST(Reactive, follows_kubernetes_formula_and_tolerance) {
  const std::unique_ptr<Autoscaler> autoscaler = make_reactive(settings_of("reactive"));
  const auto wanted = [&](int64_t outstanding, int64_t serving, int64_t starting) {
    return autoscaler->wanted({.serving = serving, .starting = starting, .outstanding = outstanding});
  };
  EXPECT_EQ(wanted(10, 2, 0), 2);
  EXPECT_EQ(wanted(21, 4, 0), 4) << "within 10%";
  EXPECT_EQ(wanted(12, 2, 0), 3);
  EXPECT_EQ(wanted(40, 2, 0), 8);
  EXPECT_EQ(wanted(40, 2, 6), 8) << "those that start count";
  EXPECT_EQ(wanted(4, 2, 0), 1);
}

TEST(Predictive, is_ahead_of_a_rising_rate_by_its_horizon) {
  const std::unique_ptr<Autoscaler> ahead = make_predictive(settings_of("predictive"));
  const std::unique_ptr<Autoscaler> now = make_planner(settings_of("planner"));
  int64_t with_trend = 0, without = 0;
  for (int i = 0; i < 100; ++i) {
    const double rate = 2 + 0.5 * i;
    with_trend = ahead->wanted(view_at(10.0 * i, rate));
    without = now->wanted(view_at(10.0 * i, rate));
  }
  // 0.5 requests/s more in each interval; six intervals until a new replica has served for one.
  EXPECT_EQ(without, 52);
  EXPECT_NEAR(static_cast<double>(with_trend), 51.5 + 3, 1);
}

TEST(Seasonal, knows_a_peak_that_it_has_seen_before) {
  const AutoscalerSettings settings = settings_of("seasonal");  // a hundred intervals
  const std::unique_ptr<Autoscaler> seasonal = make_seasonal(settings);
  const auto rate = [](int i) { return i % 100 >= 50 && i % 100 < 60 ? 20.0 : 2.0; };
  for (int i = 0; i < 244; ++i) seasonal->wanted(view_at(10.0 * i, rate(i)));
  // Interval 244 has passed: six ahead lies 250, the first of the peak.
  EXPECT_EQ(seasonal->wanted(view_at(2440, rate(244))), 20);
}

TEST(PoolScaling, replicas_go_only_when_nothing_in_the_window_wanted_more) {
  AutoscalerSettings settings = settings_of("reactive");
  settings.stabilization_s = 30;
  PoolScaling scaling(settings, {.members = 10, .at_start = 1}, Seconds(0));
  const auto look = [&](double now_s, int64_t outstanding) {
    scaling.look({.now_s = now_s, .serving = scaling.wanted(), .outstanding = outstanding});
    return scaling.wanted();
  };
  EXPECT_EQ(look(10, 20), 4);
  EXPECT_EQ(look(20, 5), 4);
  EXPECT_EQ(look(30, 10), 4);
  EXPECT_EQ(look(40, 5), 4);
  EXPECT_EQ(look(50, 5), 2) << "those of 30 s";
  EXPECT_EQ(look(70, 5), 1);
  EXPECT_EQ(look(80, 1000), 10) << "never beyond the most";
  EXPECT_EQ(look(200, 0), 1) << "nor below the least";
}

}  // namespace foretoken::autoscalers_list_test
