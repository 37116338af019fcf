// Laws of fleets on any workload: requests end once, replicas keep to their limits, nothing changes where nothing does.
#include "serving/simulation/fleet_replicas.h"

#include <set>

#include <gtest/gtest.h>

#include "serving/stages/stage_list.h"
#include "serving/test_support.h"

namespace foretoken::fleet_replicas_test {

SchedulerOptions small_engine() {
  return {.max_num_batched_tokens = 256, .max_num_seqs = 8, .num_gpu_blocks = 200};
}

Picoseconds seconds(double value) {
  return to_picoseconds(Seconds(value));
}

double rate_of_one(double /*input*/, double /*output*/) {
  return 4;
}

// So many places in one pool, as many replicas at first.
FleetConfig fleet_of(int64_t members, int64_t at_start) {
  FleetConfig fleet;
  fleet.members.assign(static_cast<size_t>(members), {.devices = 2, .cold_start = seconds(1.5)});
  fleet.pools = {{.members = members, .at_start = at_start, .capacity = rate_of_one}};
  return fleet;
}

SimulationConfig config_with(const FleetConfig& fleet, StepTimes& times, const SchedulerOptions& options) {
  SimulationConfig config;
  config.replicas.assign(fleet.members.size(), {.options = options, .times = &times});
  config.router = "least_outstanding";
  config.fleet = fleet;
  return config;
}

// Of a run that serves all.
double mean_ttft_s(const SimulatedRun& outcome) {
  double sum = 0;
  for (const RequestRecord& record : outcome.told.requests) sum += to_seconds(record.ttft()).value();
  return sum / static_cast<double>(outcome.told.requests.size());
}

FleetConfig random_fleet(RandomStream& random) {
  FleetConfig fleet;
  const size_t regions = 1 + random.below(3);
  for (size_t i = 0; i < regions; ++i) {
    const auto members = static_cast<int64_t>(1 + random.below(4));
    const auto at_start = static_cast<int64_t>(1 + random.below(static_cast<uint64_t>(members)));
    fleet.pools.push_back({.members = members, .at_start = at_start, .capacity = rate_of_one});
    for (int64_t k = 0; k < members; ++k) {
      fleet.members.push_back(
          {.devices = static_cast<int64_t>(1 + random.below(4)), .cold_start = seconds(random.uniform(0, 3))});
    }
  }
  fleet.region_policy = {.spill = random.below(2) == 0 ? Spill::never : Spill::queued,
                         .most_waiting = static_cast<int64_t>(random.below(4)),
                         .round_trip = seconds(random.uniform(0, 0.2))};
  const std::vector<std::string> kinds = autoscaler_names();
  fleet.scaling.kind = kinds[random.below(kinds.size())];
  fleet.scaling.interval_s = random.uniform(0.1, 2);
  fleet.scaling.target = random.uniform(1, 10);
  fleet.scaling.stabilization_s = random.uniform(0, 3);
  fleet.scaling.period_s = 5;
  if (random.below(2) == 0) fleet.failures.gpu_mtbf_hours = random.uniform(2, 20) / 3600;
  fleet.failures.retry = random.below(2) == 0;
  for (double at = random.uniform(0, 5); at < 10 && random.below(3) > 0; at += random.uniform(0, 5)) {
    fleet.drains.push_back(seconds(at));
  }
  if (random.below(2) == 0) fleet.admission.most_outstanding = static_cast<int64_t>(1 + random.below(20));
  if (random.below(2) == 0) fleet.admission.most_ttft = seconds(random.uniform(0.05, 2));
  if (random.below(2) == 0) fleet.admission.shares = {1, 0.5};
  return fleet;
}

TEST(Fleet, every_request_ends_once_whatever_starts_drains_or_fails) {
  LinearTimes times({});
  int64_t failures = 0, stops = 0, starts = 0, retried = 0, remote = 0;
  std::set<Rejection> reasons;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "fleet");
    const FleetConfig fleet = random_fleet(random);
    SchedulerOptions options = small_engine();
    options.async_scheduling = random.below(2) == 0;
    options.pipeline_stages = random.below(4) == 0 ? 2 : 1;
    if (random.below(3) == 0) {
      options.policy = QueuePolicy::deadline;
      options.ttft_goals = {seconds(random.uniform(0.1, 2)), seconds(4)};
    }
    SimulationConfig config = config_with(fleet, times, options);
    config.seed = seed;
    std::vector<Request> requests = random_requests(seed, 100, random.uniform(5, 40), 300, 80);
    for (Request& request : requests) {
      request.region = static_cast<int32_t>(random.below(fleet.pools.size()));
      request.priority = static_cast<int32_t>(random.below(2));
      if (random.below(30) == 0) request.output_tokens = 0;
    }
    const SimulatedRun result = simulated(config, requests);

    std::set<int64_t> ids;
    for (const RequestRecord& record : result.told.requests) {
      ids.insert(record.id);
      const Request& request = requests[static_cast<size_t>(record.id)];
      EXPECT_EQ(record.arrival, request.arrival) << "latencies count from the first arrival";
      if (record.outcome == RequestOutcome::rejected) {
        reasons.insert(record.rejection);
        continue;
      }
      EXPECT_EQ(record.output_tokens, request.output_tokens);
      EXPECT_LE(record.arrival, record.scheduled);
      EXPECT_LT(record.scheduled, record.first_token);
      EXPECT_LE(record.first_token, record.last_token);
    }
    EXPECT_EQ(ids.size(), requests.size());
    EXPECT_EQ(result.told.requests.size(), requests.size());
    EXPECT_EQ(result.totals.completed + result.totals.rejected, static_cast<int64_t>(requests.size()));

    const FleetTotals& totals = result.totals.fleet;
    int64_t devices = 0;
    for (const FleetMember& member : fleet.members) devices += member.devices;
    const double most = to_seconds(result.told.steps.empty() ? 0 : result.totals.end).value() + 100;
    EXPECT_LE(totals.gpu_seconds, static_cast<double>(devices) * most);
    for (const FleetSize& size : totals.sizes) {
      EXPECT_LE(size.serving, size.held);
      EXPECT_LE(size.held, static_cast<int64_t>(fleet.members.size()));
      EXPECT_GE(size.held, static_cast<int64_t>(fleet.pools.size())) << "each region keeps its least";
    }
    failures += totals.failures;
    stops += totals.stops;
    starts += totals.starts;
    retried += totals.retried;
    remote += totals.remote;
  }
  EXPECT_GT(failures, 100);
  EXPECT_GT(stops, 100);
  EXPECT_GT(starts, 100);
  EXPECT_GT(retried, 100);
  EXPECT_GT(remote, 100);
  EXPECT_EQ(reasons, (std::set{Rejection::no_output, Rejection::too_many, Rejection::predicted_late, Rejection::shed,
                               Rejection::lost}));
}

TEST(Fleet, one_in_which_nothing_changes_is_the_plain_run) {
  LinearTimes times({});
  for (const std::string& kind : autoscaler_names()) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(kind);
      FleetConfig fleet = fleet_of(3, 3);
      fleet.scaling = {.kind = kind, .least = 3, .interval_s = 0.7};
      SimulationConfig config = config_with(fleet, times, small_engine());
      const std::vector<Request> requests = random_requests(seed, 200, 40, 300, 80);
      const SimulatedRun with = simulated(config, requests);
      config.fleet.reset();
      const SimulatedRun plain = simulated(config, requests);
      ASSERT_EQ(with.told.steps.size(), plain.told.steps.size());
      for (size_t i = 0; i < plain.told.steps.size(); ++i) {
        EXPECT_EQ(with.told.steps[i].begin, plain.told.steps[i].begin);
        EXPECT_EQ(with.told.steps[i].end, plain.told.steps[i].end);
        EXPECT_EQ(with.told.steps[i].replica, plain.told.steps[i].replica);
      }
      ASSERT_EQ(with.told.requests.size(), plain.told.requests.size());
      for (size_t i = 0; i < plain.told.requests.size(); ++i) {
        EXPECT_EQ(with.told.requests[i].id, plain.told.requests[i].id);
        EXPECT_EQ(with.told.requests[i].first_token, plain.told.requests[i].first_token);
        EXPECT_EQ(with.told.requests[i].last_token, plain.told.requests[i].last_token);
      }
      EXPECT_DOUBLE_EQ(with.totals.fleet.gpu_seconds, 3 * 2 * to_seconds(with.totals.end).value());
    }
  }
}

TEST(Fleet, goes_on_while_requests_are_in_a_stage_before_it) {
  LinearTimes times({});
  StageList stages;
  stages.add("search", 1, 1, fixed_stage(100));
  FleetConfig fleet = fleet_of(2, 1);
  fleet.scaling = {.kind = "reactive", .interval_s = 5, .target = 4};
  SimulationConfig config = config_with(fleet, times, small_engine());
  config.stages = stages.configs();
  const SimulatedRun result = simulated(config, random_requests(1, 3, 10, 50, 10));
  EXPECT_EQ(result.totals.completed, 3);
  EXPECT_GT(result.totals.end, 300 * one_second) << "the last leaves the stage then";
}

TEST(Fleet, the_same_seed_gives_the_same_run) {
  LinearTimes times({});
  RandomStream random(7, "fleet");
  FleetConfig fleet = random_fleet(random);
  fleet.failures.gpu_mtbf_hours = 5.0 / 3600;
  const SimulationConfig config = config_with(fleet, times, small_engine());
  const std::vector<Request> requests = random_requests(7, 200, 20, 300, 80);
  const SimulatedRun one = simulated(config, requests), other = simulated(config, requests);
  EXPECT_GT(one.totals.fleet.failures, 0);
  EXPECT_EQ(one.totals.fleet.gpu_seconds, other.totals.fleet.gpu_seconds);
  ASSERT_EQ(one.told.requests.size(), other.told.requests.size());
  for (size_t i = 0; i < one.told.requests.size(); ++i) {
    EXPECT_EQ(one.told.requests[i].last_token, other.told.requests[i].last_token);
  }
}

TEST(Fleet, devices_held_are_those_of_the_fewest_to_the_most_replicas) {
  LinearTimes times({});
  for (const std::string kind : {"reactive", "predictive", "seasonal", "planner"}) {
    SCOPED_TRACE(kind);
    FleetConfig fleet = fleet_of(6, 2);
    fleet.scaling = {.kind = kind, .least = 2, .interval_s = 0.5, .target = 4, .stabilization_s = 1};
    std::vector<Request> requests = random_requests(1, 400, 20, 300, 60);
    const SimulatedRun result = simulated(config_with(fleet, times, small_engine()), requests);
    const double end = to_seconds(result.totals.end).value();
    EXPECT_GT(result.totals.fleet.gpu_seconds, 2 * 2 * end);
    EXPECT_LT(result.totals.fleet.gpu_seconds, 6 * 2 * end);
    EXPECT_GT(result.totals.fleet.starts, 0);
  }
}

TEST(Fleet, replicas_that_come_in_time_shorten_the_wait) {
  LinearTimes times({});
  const std::vector<Request> requests = random_requests(3, 400, 30, 300, 60);
  FleetConfig fleet = fleet_of(6, 1);
  const auto mean_ttft = [&](double cold_start) {
    for (FleetMember& member : fleet.members) member.cold_start = seconds(cold_start);
    fleet.scaling = {.kind = "reactive", .interval_s = 0.5, .target = 4};
    return mean_ttft_s(simulated(config_with(fleet, times, small_engine()), requests));
  };
  const double quick = mean_ttft(0.1), slow = mean_ttft(5), never = mean_ttft(1000);
  EXPECT_LT(quick, slow);
  EXPECT_LT(slow, never);
}

// One at a time, first come, first served: an interruption delays all that follow.
TEST(Fleet, no_request_ends_earlier_because_replicas_fail) {
  LinearTimes times({});
  int64_t failures = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SchedulerOptions options = small_engine();
    options.max_num_seqs = 1;
    options.enable_prefix_caching = false;
    FleetConfig fleet = fleet_of(1, 1);
    SimulationConfig config = config_with(fleet, times, options);
    config.seed = seed;
    const std::vector<Request> requests = random_requests(seed, 40, 3, 300, 40);
    const std::vector<RequestRecord> without = simulated(config, requests).told.sorted();
    config.fleet->failures.gpu_mtbf_hours = 12.0 / 3600;
    const SimulatedRun with_failures = simulated(config, requests);
    const std::vector<RequestRecord> with = with_failures.told.sorted();
    ASSERT_EQ(with.size(), without.size());
    for (size_t i = 0; i < with.size(); ++i) {
      EXPECT_GE(with[i].first_token, without[i].first_token);
      EXPECT_GE(with[i].last_token, without[i].last_token);
    }
    failures += with_failures.totals.fleet.failures;
  }
  EXPECT_GT(failures, 30);
}

TEST(Fleet, failures_come_as_often_as_the_mean_says) {
  LinearTimes times({});
  FleetConfig fleet = fleet_of(20, 20);
  for (FleetMember& member : fleet.members) member.cold_start = 0;
  fleet.failures.gpu_mtbf_hours = 40.0 / 3600;  // of a replica of two: 20 s
  const std::vector<Request> requests = {
      {.id = 0, .input_tokens = 1, .output_tokens = 1, .prefix_blocks = {}},
      {.id = 1, .arrival = 2000 * one_second, .input_tokens = 1, .output_tokens = 1, .prefix_blocks = {}}};
  const SimulatedRun result = simulated(config_with(fleet, times, small_engine()), requests);
  // Poisson with mean 20 x 2000 / 20: three deviations.
  EXPECT_NEAR(static_cast<double>(result.totals.fleet.failures), 2000, 135);
}

TEST(Fleet, a_drain_loses_nothing_and_its_replica_is_replaced) {
  LinearTimes times({});
  FleetConfig fleet = fleet_of(3, 2);
  fleet.scaling.least = 2;
  fleet.drains = {seconds(1), seconds(4)};
  const std::vector<Request> requests = random_requests(5, 200, 20, 300, 60);
  const SimulatedRun result = simulated(config_with(fleet, times, small_engine()), requests);
  EXPECT_EQ(result.totals.completed, 200);
  EXPECT_EQ(result.totals.fleet.starts, 2);
  EXPECT_EQ(result.totals.fleet.stops, 2);
  EXPECT_EQ(result.totals.fleet.retried, 0);
  EXPECT_EQ(result.totals.fleet.sizes.back().serving, 2);
}

TEST(Fleet, a_request_served_far_away_is_a_round_trip_late) {
  LinearTimes times({});
  FleetConfig fleet = fleet_of(2, 2);
  fleet.pools = {{}, {}};
  fleet.region_policy = {.spill = Spill::queued, .most_waiting = 0, .round_trip = seconds(0.1)};
  SchedulerOptions options = small_engine();
  options.max_num_seqs = 1;
  // The first runs, the second waits, the third goes to the other region, which is idle.
  std::vector<Request> requests;
  for (int64_t i = 0; i < 3; ++i) {
    requests.push_back(
        {.id = i, .arrival = i * one_second / 100, .input_tokens = 100, .output_tokens = 100, .prefix_blocks = {}});
  }
  const SimulatedRun result = simulated(config_with(fleet, times, options), requests);
  const std::vector<RequestRecord> records = result.told.sorted();
  EXPECT_EQ(records[1].replica, 0);
  EXPECT_EQ(records[2].replica, 1);
  EXPECT_EQ(records[2].ttft(), records[0].ttft() + seconds(0.1));
  EXPECT_EQ(result.totals.fleet.remote, 1);
}

TEST(Fleet, requests_stay_in_their_region_unless_they_may_spill) {
  LinearTimes times({});
  FleetConfig fleet = fleet_of(4, 4);
  fleet.pools = {{.members = 2, .at_start = 2}, {.members = 2, .at_start = 2}};
  std::vector<Request> requests = random_requests(2, 200, 60, 300, 60);
  for (Request& request : requests) request.region = static_cast<int32_t>(request.id % 4 == 0 ? 1 : 0);
  const SimulatedRun stay = simulated(config_with(fleet, times, small_engine()), requests);
  for (const RequestRecord& record : stay.told.requests) {
    EXPECT_EQ(record.replica / 2, requests[static_cast<size_t>(record.id)].region);
  }
  fleet.region_policy = {.spill = Spill::queued, .most_waiting = 2, .round_trip = seconds(0.05)};
  const SimulatedRun spill = simulated(config_with(fleet, times, small_engine()), requests);
  EXPECT_GT(spill.totals.fleet.remote, 0);
  EXPECT_LT(mean_ttft_s(spill), mean_ttft_s(stay));
}

TEST(Fleet, admission_keeps_to_its_limit_and_room_for_the_urgent) {
  LinearTimes times({});
  FleetConfig fleet = fleet_of(1, 1);
  fleet.admission = {.most_outstanding = 10, .shares = {1, 0.5}};
  std::vector<Request> requests = random_requests(4, 400, 60, 300, 60);
  for (Request& request : requests) request.priority = static_cast<int32_t>(request.id % 2);
  const SimulatedRun result = simulated(config_with(fleet, times, small_engine()), requests);
  int64_t refused[2] = {0, 0};
  for (const RequestRecord& record : result.told.requests) {
    if (record.rejection == Rejection::too_many) ++refused[record.priority];
  }
  EXPECT_GT(refused[0], 0);
  EXPECT_GT(refused[1], refused[0]);
  for (const StepRecord& step : result.told.steps) EXPECT_LE(step.running + step.waiting, 10);
}

TEST(Fleet, refusing_those_predicted_late_bounds_the_wait_of_the_others) {
  LinearTimes times({});
  const std::vector<Request> requests = random_requests(4, 600, 40, 300, 60);
  FleetConfig fleet = fleet_of(1, 1);
  const auto within = [&](const SimulatedRun& result) {
    int64_t good = 0;
    for (const RequestRecord& record : result.told.requests) {
      if (record.outcome == RequestOutcome::completed && record.ttft() <= one_second) ++good;
    }
    return good;
  };
  const SimulatedRun open = simulated(config_with(fleet, times, small_engine()), requests);
  fleet.admission.most_ttft = one_second;
  const SimulatedRun limited = simulated(config_with(fleet, times, small_engine()), requests);
  EXPECT_GT(within(limited), 2 * within(open));
  EXPECT_GT(within(limited), limited.totals.completed / 2);
}

}  // namespace foretoken::fleet_replicas_test
