// Laws of engines that share a device.
#include "serving/simulation/shared_device.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "serving/colocation/model_requests.h"
#include "serving/test_support.h"

namespace foretoken::shared_device_test {

constexpr Sharing every_sharing[] = {Sharing::time_slicing, Sharing::mps, Sharing::mig, Sharing::swap};

class FixedDemand final : public StepDemands {
 public:
  explicit FixedDemand(const StepDemand& demand) : demand_(demand) {}
  StepDemand of(const StepBatch& /*batch*/) override { return demand_; }

 private:
  StepDemand demand_;
};

struct Shared {
  Sharing sharing = Sharing::mps;
  size_t engines = 2;
  StepDemand demand = {.compute = 1, .memory = 0.2, .busy = 1};
  Seconds switch_time = Seconds(0);
  Seconds longest_wait = Seconds(1);
};

struct Outcome {
  SimulationTotals totals;
  RecordedRun run;
};

std::vector<Request> requests_for(uint64_t seed, int64_t count, size_t engines, double rate) {
  auto source = with_models(std::make_unique<ListedRequests>(random_requests(seed, count, rate, 300, 60)),
                            std::vector<double>(engines, 1.0), seed);
  std::vector<Request> requests;
  while (source->next_arrival()) requests.push_back(source->next());
  return requests;
}

ReplicaConfig engine(StepTimes& times) {
  return {.options = {.max_num_batched_tokens = 512, .max_num_seqs = 16, .num_gpu_blocks = 200}, .times = &times};
}

Outcome outcome(const Shared& shared, const std::vector<Request>& requests) {
  LinearTimes times({});
  FixedDemand demand(shared.demand);
  Colocation colocation{
      .sharing = shared.sharing, .switch_time = shared.switch_time, .longest_wait = shared.longest_wait, .engines = {}};
  SimulationConfig config;
  for (size_t i = 0; i < shared.engines; ++i) {
    config.replicas.push_back(engine(times));
    const double part = 1 / static_cast<double>(shared.sharing == Sharing::mig ? shared.engines : 1);
    colocation.engines.push_back({.share = {.processors = part, .bandwidth = part},
                                  .demands = &demand,
                                  .sleep = Seconds(0.2),
                                  .wake = Seconds(0.3),
                                  .bytes_out = Bytes(1e9),
                                  .bytes_in = Bytes(2e9)});
  }
  config.colocation = colocation;
  Outcome result;
  ListedRequests source(requests);
  result.totals = simulate(config, source, result.run);
  return result;
}

TEST(Colocation, every_request_ends_once_with_its_tokens_at_its_own_model) {
  for (const Sharing sharing : every_sharing) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(std::string(sharing_name(sharing)) + std::to_string(seed));
      std::vector<Request> requests = requests_for(seed, 60, 3, 20);
      requests[7].output_tokens = 0;
      const Outcome result = outcome(
          {.sharing = sharing, .engines = 3, .switch_time = Seconds(1e-4), .longest_wait = Seconds(0.5)}, requests);
      EXPECT_EQ(result.totals.completed, 59);
      EXPECT_EQ(result.totals.rejected, 1);
      ASSERT_EQ(result.run.requests.size(), requests.size());
      for (const RequestRecord& record : result.run.requests) {
        const Request& request = requests[static_cast<size_t>(record.id)];
        EXPECT_EQ(record.replica, request.model);
        if (record.outcome == RequestOutcome::rejected) continue;
        EXPECT_EQ(record.output_tokens, request.output_tokens);
        EXPECT_LE(request.arrival, record.queued);
        EXPECT_LE(record.queued, record.scheduled);
        EXPECT_LT(record.scheduled, record.first_token);
        EXPECT_LE(record.first_token, record.last_token);
        EXPECT_LE(record.last_token, result.totals.end);
      }
    }
  }
}

TEST(Colocation, an_engine_alone_on_a_shared_device_is_the_plain_run) {
  for (const Sharing sharing : every_sharing) {
    const std::vector<Request> requests = requests_for(5, 80, 1, 30);
    const Outcome shared = outcome({.sharing = sharing, .engines = 1, .switch_time = Seconds(1e-3)}, requests);
    LinearTimes times({});
    SimulationConfig config;
    config.replicas = {engine(times)};
    ListedRequests source(requests);
    RecordedRun plain;
    const SimulationTotals totals = simulate(config, source, plain);
    EXPECT_EQ(shared.totals.end, totals.end);
    EXPECT_EQ(shared.totals.steps, totals.steps);
    EXPECT_EQ(shared.run.gap_time, plain.gap_time);
    const std::vector<RequestRecord> a = shared.run.sorted(), b = plain.sorted();
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].queued, b[i].queued);
      EXPECT_EQ(a[i].scheduled, b[i].scheduled);
      EXPECT_EQ(a[i].first_token, b[i].first_token);
      EXPECT_EQ(a[i].last_token, b[i].last_token);
    }
    EXPECT_EQ(shared.totals.device_use[0].slowdown(), 1);
    EXPECT_EQ(shared.totals.device_use[0].switches, 0);
  }
}

TEST(Colocation, steps_of_engines_in_turn_never_overlap_and_wait_for_the_switch) {
  const std::vector<Request> requests = requests_for(2, 60, 2, 40);
  const Outcome result = outcome({.sharing = Sharing::time_slicing, .switch_time = Seconds(1e-3)}, requests);
  std::vector<StepRecord> steps = result.run.steps;
  std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  int64_t changes = 0;
  for (size_t i = 1; i < steps.size(); ++i) {
    const bool changed = steps[i].replica != steps[i - 1].replica;
    const Picoseconds switched = changed ? to_picoseconds(Seconds(1e-3)) : 0;
    EXPECT_GE(steps[i].begin, steps[i - 1].end + switched);
    changes += changed ? 1 : 0;
  }
  EXPECT_GT(changes, 20);
  EXPECT_EQ(changes, result.totals.device_use[0].switches + result.totals.device_use[1].switches);
}

TEST(Colocation, a_longer_switch_is_never_faster) {
  const std::vector<Request> requests = requests_for(4, 60, 2, 40);
  Picoseconds before = 0;
  for (const double seconds : {0.0, 1e-4, 1e-3, 1e-2}) {
    const Outcome result = outcome({.sharing = Sharing::time_slicing, .switch_time = Seconds(seconds)}, requests);
    EXPECT_GT(result.totals.end, before);
    before = result.totals.end;
  }
}

// Requests that are all there at once: what counts is the work.
std::vector<Request> backlog(int64_t count) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < count; ++i) {
    requests.push_back({.id = i, .input_tokens = 128, .output_tokens = 50, .model = static_cast<int32_t>(i % 2)});
  }
  return requests;
}

TEST(Colocation, two_engines_together_do_no_more_work_than_the_device_can_and_no_less_than_in_turn) {
  const std::vector<Request> requests = backlog(60);
  const Outcome turns = outcome({.sharing = Sharing::time_slicing}, requests);
  const double in_turn = to_seconds(turns.totals.end).value();
  for (const double compute : {0.2, 0.5, 0.8, 1.0}) {
    const Outcome together =
        outcome({.sharing = Sharing::mps, .demand = {.compute = compute, .memory = 0.1, .busy = 1}}, requests);
    const double end = to_seconds(together.totals.end).value();
    double work = 0;
    for (const DeviceUse& use : together.totals.device_use) work += use.alone_s * compute;
    EXPECT_LE(work, end * (1 + 1e-9));
    EXPECT_LE(end, in_turn * (1 + 1e-9));
    if (compute == 1) {
      EXPECT_NEAR(end, in_turn, in_turn * 1e-9);
    }
  }
}

TEST(Colocation, halves_of_a_device_take_twice_as_long_for_steps_that_use_all_of_it) {
  const std::vector<Request> requests = backlog(40);
  const Outcome halves = outcome({.sharing = Sharing::mig}, requests);
  for (const DeviceUse& use : halves.totals.device_use) EXPECT_NEAR(use.slowdown(), 2, 1e-6);
}

TEST(Colocation, a_swap_moves_exactly_the_weights_and_takes_its_time) {
  const std::vector<Request> requests = requests_for(6, 60, 2, 5);
  const Outcome result = outcome({.sharing = Sharing::swap, .longest_wait = Seconds(1)}, requests);
  int64_t swaps = 0;
  double moved = 0;
  for (const DeviceUse& use : result.totals.device_use) {
    swaps += use.switches;
    moved += use.moved_bytes;
    EXPECT_NEAR(use.slowdown(), 1, 1e-12) << "a model that is awake has the device to itself";
  }
  EXPECT_GT(swaps, 2);
  EXPECT_DOUBLE_EQ(moved, static_cast<double>(swaps) * 3e9);
  std::vector<StepRecord> steps = result.run.steps;
  std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < steps.size(); ++i) {
    const bool swapped = steps[i].replica != steps[i - 1].replica;
    EXPECT_GE(steps[i].begin, steps[i - 1].end + (swapped ? to_picoseconds(Seconds(0.5)) : 0));
  }
}

TEST(Colocation, a_model_that_slept_has_forgotten_its_cache) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < 4; ++i) {
    requests.push_back({.id = i,
                        .arrival = i * 10 * one_second,
                        .input_tokens = 64,
                        .output_tokens = 5,
                        .model = i == 2 ? 1 : 0,
                        .prefix_block_tokens = 16,
                        .prefix_blocks = {1, 2, 3, 4}});
  }
  const std::vector<RequestRecord> ended = outcome({.sharing = Sharing::swap}, requests).run.sorted();
  EXPECT_EQ(ended[1].cached_tokens, 48);
  EXPECT_EQ(ended[3].cached_tokens, 0);
}

TEST(Colocation, a_model_asleep_waits_no_longer_than_asked_for_one_that_never_rests) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < 400; ++i) {
    requests.push_back(
        {.id = i, .arrival = i * one_second / 20, .input_tokens = 64, .output_tokens = 20, .model = i == 10 ? 1 : 0});
  }
  const std::vector<RequestRecord> ended =
      outcome({.sharing = Sharing::swap, .longest_wait = Seconds(2)}, requests).run.sorted();
  const double waited = to_seconds(ended[10].scheduled - ended[10].arrival).value();
  EXPECT_GE(waited, 2.5);
  EXPECT_LT(waited, 4) << "then those that run end, and the models swap";
}

TEST(Colocation, the_same_run_gives_the_same_answers) {
  for (const Sharing sharing : every_sharing) {
    const std::vector<Request> requests = requests_for(9, 60, 2, 30);
    const Shared shared{.sharing = sharing, .switch_time = Seconds(1e-4)};
    EXPECT_EQ(outcome(shared, requests).totals.end, outcome(shared, requests).totals.end);
  }
}

}  // namespace foretoken::shared_device_test
