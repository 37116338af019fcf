#include "compose/dispatch.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "compose/launch_order.h"

namespace foretoken::dispatch_test {

constexpr Dispatch all_kinds[] = {Dispatch::fused, Dispatch::graph, Dispatch::piecewise, Dispatch::eager};

// A step of random operators, layers, kernels and host times.
struct Step {
  Stack stack;
  std::vector<Operator> operators;
  std::vector<Launch> launches;
  std::vector<DeviceCall> calls;

  DispatchTime run(const DispatchRequest& request) const {
    return dispatch(stack, launches, calls, operators, request);
  }
};

Step random_step(uint64_t seed) {
  RandomStream random(seed, "dispatch");
  Step step;
  StackCosts& costs = step.stack.costs;
  for (Seconds* cost : {&costs.graph_start, &costs.kernel_gap, &costs.graph_gap, &costs.eager_gap, &costs.launch,
                        &costs.piece, &costs.step_host, &costs.synchronize}) {
    *cost = Seconds(random.uniform(0, 1e-5));
  }
  const auto layers = static_cast<int64_t>(1 + random.below(5));
  const size_t count = 1 + random.below(12);
  for (size_t i = 0; i < count; ++i) {
    Operator call{.name = "operator", .pass = 2 * i < count ? Pass::forward : Pass::backward};
    const bool ends = i == 0 || i + 1 == count;
    call.count = ends ? 1 : 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(layers)));
    step.operators.push_back(call);
    const size_t kernels = random.below(4);
    for (size_t k = 0; k < kernels; ++k) {
      step.launches.push_back({.call = i,
                               .count = call.count * static_cast<int64_t>(1 + random.below(3)),
                               .host = Seconds(random.uniform(0, 2e-5)),
                               .host_before = Seconds(k == 0 ? random.uniform(0, 5e-5) : 0)});
      step.calls.push_back({.seconds = random.uniform(1e-7, 5e-5),
                            .collective = random.below(8) == 0,
                            .attention = random.below(6) == 0});
    }
  }
  return step;
}

double busy(const Step& step) {
  double sum = 0;
  for (size_t i = 0; i < step.calls.size(); ++i) {
    sum += step.calls[i].seconds * static_cast<double>(step.launches[i].count);
  }
  return sum;
}

double launches_of(const Step& step) {
  double sum = 0;
  for (const Launch& launch : step.launches) sum += static_cast<double>(launch.count);
  return sum;
}

constexpr uint64_t seeds = 300;

TEST(Dispatch, every_launch_is_visited_as_often_as_it_counts_and_a_call_starts_once) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Step step = random_step(seed);
    std::vector<int64_t> visits(step.launches.size());
    std::vector<int64_t> starts(step.operators.size());
    each_launch_in_order(step.launches, step.operators, [&](size_t launch, bool first) {
      ++visits[launch];
      if (first) ++starts[step.launches[launch].call];
    });
    for (size_t i = 0; i < visits.size(); ++i) {
      EXPECT_EQ(visits[i], step.launches[i].count) << seed;
      EXPECT_EQ(starts[step.launches[i].call], step.operators[step.launches[i].call].count) << seed;
    }
  }
}

TEST(Dispatch, layers_run_one_after_the_other_between_what_is_called_once) {
  const std::vector<Operator> operators = {
      {.name = "embedding"}, {.name = "qkv_proj", .count = 3}, {.name = "o_proj", .count = 3}, {.name = "head"}};
  std::vector<Launch> launches;
  for (size_t i = 0; i < operators.size(); ++i) launches.push_back({.call = i, .count = operators[i].count});
  std::vector<size_t> order;
  each_launch_in_order(launches, operators, [&](size_t launch, bool) { order.push_back(launch); });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 1, 2, 1, 2, 3}));
}

TEST(Dispatch, the_parts_sum_to_the_whole_and_none_is_negative) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Step step = random_step(seed);
    for (const Dispatch kind : all_kinds) {
      const DispatchTime time = step.run({.kind = kind});
      EXPECT_NEAR(time.seconds, time.kernels + time.communication + time.launch_gap + time.host_stall, 1e-12);
      EXPECT_GE(time.kernels, 0);
      EXPECT_GE(time.communication, 0);
      EXPECT_GE(time.launch_gap, -1e-15);
      EXPECT_GE(time.host_stall, -1e-15);
    }
  }
}

TEST(Dispatch, the_wall_is_never_below_the_kernels_nor_below_the_host) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Step step = random_step(seed);
    for (const Dispatch kind : all_kinds) {
      const DispatchTime time = step.run({.kind = kind});
      EXPECT_GE(time.seconds, busy(step) - 1e-12) << dispatch_name(kind);
      EXPECT_GE(time.seconds, time.host - 1e-12) << dispatch_name(kind);
    }
  }
}

TEST(Dispatch, a_host_that_works_ahead_shows_only_where_it_takes_longer_than_the_device) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Step step = random_step(seed);
    step.stack.asynchronous = true;
    for (const Dispatch kind : {Dispatch::graph, Dispatch::piecewise, Dispatch::eager}) {
      const DispatchTime time = step.run({.kind = kind});
      const double device = time.kernels + time.communication + time.launch_gap;
      EXPECT_GE(device, busy(step) - 1e-12) << dispatch_name(kind);
      EXPECT_NEAR(time.seconds, std::max(device, time.host), 1e-12) << dispatch_name(kind);
      EXPECT_NEAR(time.seconds, device + time.host_stall, 1e-12) << dispatch_name(kind);
      EXPECT_GE(time.host, step.stack.costs.step_host.value()) << dispatch_name(kind);
      EXPECT_GT(step.run({.kind = kind, .host_factor = 1e6}).seconds, 1e5 * step.stack.costs.step_host.value());
    }
  }
}

TEST(Dispatch, fused_is_the_sum_of_the_kernels) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Step step = random_step(seed);
    EXPECT_NEAR(step.run({.kind = Dispatch::fused}).seconds, busy(step), 1e-12);
  }
}

TEST(Dispatch, a_host_that_takes_no_time_leaves_the_kernels_and_their_gaps) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Step step = random_step(seed);
    const StackCosts& costs = step.stack.costs;
    if (step.launches.empty()) continue;
    const double gaps = costs.launch.value() + launches_of(step) * costs.eager_gap.value() + costs.synchronize.value();
    EXPECT_NEAR(step.run({.kind = Dispatch::eager, .host_factor = 0}).seconds, busy(step) + gaps, 1e-12);
  }
}

TEST(Dispatch, a_host_far_slower_than_the_device_sets_the_pace) {
  const Step step = random_step(7);
  ASSERT_FALSE(step.launches.empty());
  const DispatchTime time = step.run({.kind = Dispatch::eager, .host_factor = 1e6});
  EXPECT_NEAR(time.seconds / time.host, 1, 1e-3);
  EXPECT_TRUE(time.host_bound());
}

TEST(Dispatch, a_host_that_ends_the_step_bounds_it) {
  Step step = random_step(7);
  step.stack.asynchronous = true;
  const double busy_seconds = step.run({.kind = Dispatch::graph, .host_factor = 0}).seconds;
  step.stack.costs.step_host = Seconds(1.2 * busy_seconds);
  EXPECT_TRUE(step.run({.kind = Dispatch::graph}).host_bound());
  step.stack.costs.step_host = Seconds(0.9 * busy_seconds);
  EXPECT_FALSE(step.run({.kind = Dispatch::graph}).host_bound());
}

TEST(Dispatch, a_slower_host_or_device_never_speeds_up) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Step step = random_step(seed);
    for (const Dispatch kind : all_kinds) {
      double before_host = 0, before_device = 0;
      for (const double factor : {0.1, 0.5, 1.0, 2.0, 10.0}) {
        const double host = step.run({.kind = kind, .host_factor = factor}).seconds;
        const double device = step.run({.kind = kind, .device_factor = factor}).seconds;
        EXPECT_GE(host, before_host - 1e-15) << dispatch_name(kind);
        EXPECT_GE(device, before_device - 1e-15) << dispatch_name(kind);
        before_host = host, before_device = device;
      }
    }
  }
}

TEST(Dispatch, a_result_that_the_host_reads_lets_the_device_run_dry) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Step step = random_step(seed);
    const double queued = step.run({.kind = Dispatch::eager}).seconds;
    const double captured = step.run({.kind = Dispatch::graph}).seconds;
    for (Launch& launch : step.launches) launch.waits = true;
    const double drained = step.run({.kind = Dispatch::eager}).seconds;
    // Every launch: its host time, its way to the device, its kernel, the way back.
    const StackCosts& costs = step.stack.costs;
    double one_by_one = costs.step_host.value() + costs.synchronize.value();
    each_launch_in_order(step.launches, step.operators, [&](size_t i, bool first) {
      const Launch& launch = step.launches[i];
      one_by_one += launch.host.value() + (first ? launch.host_before.value() : 0) + costs.launch.value() +
                    step.calls[i].seconds + costs.eager_gap.value() + costs.synchronize.value();
    });
    EXPECT_GE(drained, queued - 1e-15);
    EXPECT_NEAR(drained, one_by_one, 1e-12);
    EXPECT_EQ(step.run({.kind = Dispatch::graph}).seconds, captured) << "a graph holds them all";
  }
}

TEST(Dispatch, one_graph_is_never_slower_than_launching_where_its_start_and_gaps_are_not) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Step step = random_step(seed);
    StackCosts& costs = step.stack.costs;
    costs.graph_start = std::min(costs.graph_start, costs.launch);
    costs.graph_gap = std::min(costs.graph_gap, costs.eager_gap);
    if (step.launches.empty()) continue;
    EXPECT_LE(step.run({.kind = Dispatch::graph}).seconds, step.run({.kind = Dispatch::eager}).seconds + 1e-12);
  }
}

TEST(Dispatch, recording_the_timeline_changes_nothing) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Step step = random_step(seed);
    if (step.launches.empty()) continue;
    step.stack.asynchronous = seed % 2 == 0;  // then the device is followed only where the host waits for it
    step.launches.back().waits = seed % 4 == 0;
    for (const Dispatch kind : all_kinds) {
      std::vector<TimelineEvent> timeline;
      const DispatchTime plain = step.run({.kind = kind}), recorded = step.run({.kind = kind, .timeline = &timeline});
      EXPECT_NEAR(plain.seconds, recorded.seconds, 1e-12) << dispatch_name(kind);
      EXPECT_NEAR(plain.host_stall, recorded.host_stall, 1e-12) << dispatch_name(kind);
      EXPECT_NEAR(plain.launch_gap, recorded.launch_gap, 1e-12) << dispatch_name(kind);
      const auto on_device = [](const TimelineEvent& event) { return !event.on_host; };
      EXPECT_EQ(static_cast<double>(std::count_if(timeline.begin(), timeline.end(), on_device)), launches_of(step));
    }
  }
}

TEST(Dispatch, events_of_one_track_do_not_overlap_and_no_kernel_starts_before_its_launch_ends) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Step step = random_step(seed);
    for (const Dispatch kind : all_kinds) {
      std::vector<TimelineEvent> timeline;
      const DispatchTime time = step.run({.kind = kind, .timeline = &timeline});
      double host_end = 0, device_end = 0;
      for (const TimelineEvent& event : timeline) {
        double& end = event.on_host ? host_end : device_end;
        EXPECT_GE(event.start, end - 1e-15);
        if (!event.on_host) {
          EXPECT_GE(event.start, host_end - 1e-15);
        }
        end = event.start + event.seconds;
        EXPECT_LE(end, time.seconds + 1e-12);
      }
    }
  }
}

TEST(Dispatch, pieces_are_cut_at_attention) {
  Step step;
  step.stack.costs.piece = Seconds(1e-3);
  step.operators = {
      {.name = "qkv_proj", .count = 4}, {.name = "attention", .count = 4}, {.name = "o_proj", .count = 4}};
  for (size_t i = 0; i < 3; ++i) {
    step.launches.push_back({.call = i, .count = 4});
    step.calls.push_back({.seconds = 1e-6, .attention = i == 1});
  }
  // Before the first attention, between each two, and after the last.
  EXPECT_NEAR(step.run({.kind = Dispatch::piecewise}).host, 5e-3, 1e-12);
}

}  // namespace foretoken::dispatch_test
