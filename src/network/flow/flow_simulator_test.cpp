#include "network/flow/flow_simulator.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::flow_simulator_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr BytesPerSecond fast(100e9);

NetworkGraph star(int64_t devices, BytesPerSecond bandwidth = fast, Seconds latency = {}) {
  NetworkGraph graph{.device_count = devices, .devices_forward = false};
  const NetworkNode centre = graph.add(NetworkNodeKind::network_switch);
  for (int32_t i = 0; i < devices; ++i) graph.connect(i, centre, bandwidth, latency);
  return graph;
}

// Two stars joined by one link each way.
Topology dumbbell(int64_t devices_per_side, BytesPerSecond waist) {
  NetworkGraph graph{.device_count = 2 * devices_per_side, .devices_forward = false};
  const NetworkNode left = graph.add(NetworkNodeKind::network_switch);
  const NetworkNode right = graph.add(NetworkNodeKind::network_switch);
  for (int32_t i = 0; i < devices_per_side; ++i) {
    graph.connect(i, left, fast, {});
    graph.connect(static_cast<int32_t>(devices_per_side) + i, right, fast, {});
  }
  graph.connect(left, right, waist, {});
  return Topology(std::move(graph));
}

TransferPlan send(int32_t from, int32_t to, double bytes) {
  return {.stages = {{.transfers = {{from, to, bytes}}}}};
}

TransferPlan ring(std::span<const int32_t> devices, double bytes) {
  Stage stage;
  for (size_t i = 0; i < devices.size(); ++i) {
    stage.transfers.push_back({devices[i], devices[(i + 1) % devices.size()], bytes});
  }
  return {.stages = {std::move(stage)}};
}

// End of every job, by number.
std::map<JobNumber, Seconds> run(FlowSimulator& simulator) {
  std::map<JobNumber, Seconds> ends;
  while (true) {
    const std::span<const JobNumber> done = simulator.advance();
    if (done.empty()) return ends;
    for (const JobNumber job : done) ends[job] = to_seconds(simulator.now());
  }
}

TEST(FlowSimulator, a_flow_alone_takes_its_latency_and_its_bytes_over_the_bottleneck) {
  NetworkGraph graph = star(2, fast, microseconds(0.5));
  graph.links[2].bandwidth = BytesPerSecond(25e9);  // device 1 to the switch
  const Topology topology(std::move(graph));
  FlowSimulator simulator(topology);
  simulator.start(send(1, 0, 1e6), 0);
  EXPECT_DOUBLE_EQ(run(simulator)[0].value(), 1e-6 + 1e6 / 25e9);
}

TEST(FlowSimulator, the_places_of_plans_that_ran_once_are_used_again) {
  const Topology topology(star(4));
  FlowSimulator simulator(topology);
  for (int i = 0; i < 1000; ++i) {
    simulator.start(send(0, 1, 1e6), simulator.now());
    simulator.start(send(2, 3, 1e6), simulator.now());
    EXPECT_THAT(simulator.advance(), ElementsAre(2 * i, 2 * i + 1));
  }
  EXPECT_LT(simulator.prepare(send(0, 1, 1e6)), 2);
}

TEST(FlowSimulator, a_plan_in_the_place_of_another_still_takes_its_own_path) {
  // Two switches with eight switches between them.
  NetworkGraph graph{.device_count = 2, .devices_forward = false};
  const NetworkNode left = graph.add(NetworkNodeKind::network_switch);
  const NetworkNode right = graph.add(NetworkNodeKind::network_switch);
  graph.connect(0, left, fast, {});
  graph.connect(1, right, fast, {});
  for (int i = 0; i < 8; ++i) {
    const NetworkNode middle = graph.add(NetworkNodeKind::network_switch);
    graph.connect(left, middle, fast, {});
    graph.connect(middle, right, fast, {});
  }
  const Topology topology(std::move(graph));
  FlowSimulator simulator(topology, {.record_link_use = true});
  for (int i = 0; i < 200; ++i) {
    simulator.start(send(0, 1, 1e6), simulator.now());
    simulator.advance();
  }
  std::set<LinkIndex> used;
  for (const LinkUse& use : simulator.link_use()) used.insert(use.link);
  EXPECT_EQ(used.size(), 2U + 8 * 2);
}

TEST(FlowSimulator, every_message_of_a_stage_pays_latency_and_the_start_comes_once) {
  const Topology topology(star(2, fast, microseconds(0.5)));
  FlowSimulator simulator(topology);
  TransferPlan plan = send(0, 1, 1e6);
  plan.start = microseconds(3);
  plan.stages[0].messages = 4;
  plan.stages[0].per_message = microseconds(2);
  plan.stages.push_back(plan.stages[0]);
  simulator.start(plan, to_picoseconds(microseconds(7)));
  EXPECT_NEAR(run(simulator)[0].value(), 7e-6 + 3e-6 + 2 * (4 * (2e-6 + 1e-6) + 1e6 / 100e9), 1e-12);
}

TEST(FlowSimulator, two_flows_through_one_link_share_it_until_the_shorter_has_ended) {
  const Topology topology = dumbbell(2, BytesPerSecond(10e9));
  FlowSimulator simulator(topology);
  simulator.start(send(0, 2, 10e9), 0);
  simulator.start(send(1, 3, 5e9), 0);
  const auto ends = run(simulator);
  EXPECT_DOUBLE_EQ(ends.at(1).value(), 1.0);  // 5 GB at 5 GB/s
  EXPECT_DOUBLE_EQ(ends.at(0).value(), 1.5);  // 5 GB at 5 GB/s, then 5 at 10
}

TEST(FlowSimulator, a_late_flow_slows_an_early_one_only_from_its_start) {
  const Topology topology = dumbbell(2, BytesPerSecond(10e9));
  FlowSimulator simulator(topology);
  simulator.start(send(0, 2, 10e9), 0);
  simulator.start(send(1, 3, 10e9), to_picoseconds(Seconds(0.5)));
  const auto ends = run(simulator);
  EXPECT_DOUBLE_EQ(ends.at(0).value(), 1.5);
  EXPECT_DOUBLE_EQ(ends.at(1).value(), 2.0);
}

TEST(FlowSimulator, transfers_of_a_stage_end_together_at_the_pace_of_the_slowest) {
  NetworkGraph graph = star(4);
  graph.links[4].bandwidth = BytesPerSecond(50e9);  // device 2 to the switch
  const Topology topology(std::move(graph));
  FlowSimulator simulator(topology, {.record_link_use = true});
  const std::vector<int32_t> devices = {0, 1, 2, 3};
  simulator.start(ring(devices, 1e9), 0);
  EXPECT_DOUBLE_EQ(run(simulator)[0].value(), 1e9 / 50e9);
  for (const LinkUse& use : simulator.link_use()) {
    EXPECT_DOUBLE_EQ(use.rate.value(), use.time == 0 ? 50e9 : 0) << use.link;
  }
  EXPECT_EQ(simulator.link_use().size(), 16U);
}

TEST(FlowSimulator, reduction_in_the_switch_crosses_a_link_between_switches_once) {
  const Topology topology = dumbbell(4, fast);
  const std::vector<int32_t> devices = {0, 4, 1, 5, 2, 6, 3, 7};  // every neighbour is on the other side
  TransferPlan plan = ring(devices, 1e9);
  FlowSimulator by_devices(topology);
  by_devices.start(plan, 0);
  for (Transfer& transfer : plan.stages[0].transfers) transfer.in_switch = true;
  FlowSimulator by_switches(topology);
  by_switches.start(plan, 0);
  EXPECT_DOUBLE_EQ(run(by_devices)[0].value(), 4 * 1e9 / 100e9);
  EXPECT_DOUBLE_EQ(run(by_switches)[0].value(), 1e9 / 100e9);
}

TEST(FlowSimulator, equal_jobs_end_at_the_same_moment) {
  const Topology topology = dumbbell(16, BytesPerSecond(30e9));
  FlowSimulator simulator(topology);
  for (int32_t i = 0; i < 16; ++i) simulator.start(send(i, 16 + (i * 5) % 16, 1e7), 0);
  EXPECT_EQ(simulator.jobs_left(), 16);
  EXPECT_EQ(simulator.advance().size(), 16U);
  EXPECT_NEAR(to_seconds(simulator.now()).value(), 16 * 1e7 / 30e9, 1e-12);
  EXPECT_EQ(simulator.jobs_left(), 0);
}

TEST(FlowSimulator, from_event_to_event_jobs_end_when_they_do_in_one_call) {
  const Topology topology = dumbbell(4, BytesPerSecond(30e9));
  FlowSimulator at_once(topology), stepped(topology);
  EXPECT_EQ(stepped.next_event(), end_of_time);
  for (FlowSimulator* simulator : {&at_once, &stepped}) {
    for (int32_t i = 0; i < 4; ++i) simulator->start(send(i, 4 + i, 1e7 * (i + 1)), 1000 * i);
  }
  for (int i = 0; i < 4; ++i) {
    const std::span<const JobNumber> done = at_once.advance();
    ASSERT_EQ(done.size(), 1U);
    Picoseconds now = stepped.next_event();
    std::span<const JobNumber> ended = stepped.advance(now);
    for (; ended.empty(); ended = stepped.advance(now)) now = stepped.next_event();
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0], done[0]);
    EXPECT_EQ(now, at_once.now());
  }
  EXPECT_EQ(stepped.next_event(), end_of_time);
}

TEST(FlowSimulator, thousands_of_unequal_flows_into_one_device_keep_its_link_full_to_the_end) {
  const Topology topology(star(2));
  FlowSimulator simulator(topology);
  double bytes = 0;
  for (int i = 0; i < 2000; ++i) {
    bytes += 1e6 + i;
    simulator.start(send(0, 1, 1e6 + i), 0);
  }
  const auto ends = run(simulator);
  EXPECT_EQ(ends.size(), 2000U);
  EXPECT_NEAR(ends.at(1999).value() / (bytes / 100e9), 1, 1e-9);
  for (JobNumber job = 1; job < 2000; ++job) EXPECT_GT(ends.at(job).value(), ends.at(job - 1).value());
}

TEST(FlowSimulator, time_stops_at_the_limit_and_work_can_be_added_there) {
  const Topology topology(star(3));
  FlowSimulator simulator(topology);
  const PlanNumber plan = simulator.prepare(send(0, 1, 1e9));  // 10 ms
  simulator.start(plan, 0);
  EXPECT_THAT(simulator.advance(to_picoseconds(milliseconds(4))), IsEmpty());
  EXPECT_EQ(simulator.now(), to_picoseconds(milliseconds(4)));
  simulator.start(plan, simulator.now());
  EXPECT_THAT(simulator.advance(), ElementsAre(0));
  EXPECT_EQ(simulator.now(), to_picoseconds(milliseconds(16)));
  EXPECT_THAT(simulator.advance(), ElementsAre(1));
  EXPECT_EQ(simulator.now(), to_picoseconds(milliseconds(20)));
  EXPECT_THAT(simulator.advance(), IsEmpty());
  EXPECT_EQ(simulator.now(), to_picoseconds(milliseconds(20)));
}

TEST(FlowSimulator, a_plan_without_bytes_takes_only_its_latencies) {
  const Topology topology(star(2, fast, microseconds(1)));
  FlowSimulator simulator(topology);
  simulator.start(TransferPlan{.start = microseconds(1)}, 0);
  simulator.start(send(0, 1, 0), 0);
  simulator.start(send(1, 1, 5e9), 0);  // to itself: no link
  const auto ends = run(simulator);
  EXPECT_DOUBLE_EQ(ends.at(0).value(), 1e-6);
  EXPECT_DOUBLE_EQ(ends.at(1).value(), 2e-6);
  EXPECT_DOUBLE_EQ(ends.at(2).value(), 0);
}

TEST(FlowSimulator, plans_that_make_no_sense_are_refused) {
  const Topology topology(star(2));
  FlowSimulator simulator(topology);
  EXPECT_THROW(simulator.prepare(send(0, 2, 1)), InputError);
  EXPECT_THROW(simulator.prepare(send(-1, 0, 1)), InputError);
  EXPECT_THROW(simulator.prepare(send(0, 1, -1)), InputError);
  EXPECT_THROW(simulator.prepare(send(0, 1, std::numeric_limits<double>::quiet_NaN())), InputError);
  EXPECT_THROW(simulator.prepare({.start = Seconds(-1)}), InputError);
  EXPECT_THROW(simulator.prepare({.stages = {{.messages = -1}}}), InputError);
  simulator.start(send(0, 1, 1e20), 0);  // 32 years
  EXPECT_THROW(simulator.advance(), InputError);
}

// Laws on random traffic.
class RandomTraffic : public testing::TestWithParam<int> {
 protected:
  struct Arrival {
    TransferPlan plan;
    Picoseconds at;
  };

  // Sends and rings among 24 devices on three switches, with unequal links.
  std::vector<Arrival> arrivals() const {
    RandomStream random(static_cast<uint64_t>(GetParam()), "traffic");
    std::vector<Arrival> arrivals;
    for (int i = 0; i < 60; ++i) {
      const auto at = static_cast<Picoseconds>(random.below(2'000'000'000));
      if (random.below(2) == 0) {
        const auto from = static_cast<int32_t>(random.below(24));
        const auto to = static_cast<int32_t>((static_cast<uint64_t>(from) + 1 + random.below(23)) % 24);
        arrivals.push_back({send(from, to, random.uniform(1, 2e8)), at});
      } else {
        std::vector<int32_t> devices;
        const uint64_t step = 1 + random.below(5);
        for (uint64_t device = random.below(4); device < 24; device += step) {
          devices.push_back(static_cast<int32_t>(device));
        }
        arrivals.push_back({ring(devices, random.uniform(1, 1e8)), at});
      }
    }
    return arrivals;
  }

  NetworkGraph network(double bandwidth_factor = 1) const {
    RandomStream random(static_cast<uint64_t>(GetParam()), "links");
    NetworkGraph graph{.device_count = 24, .devices_forward = false};
    std::vector<NetworkNode> switches;
    for (int i = 0; i < 3; ++i) switches.push_back(graph.add(NetworkNodeKind::network_switch));
    const auto rate = [&] { return BytesPerSecond(bandwidth_factor * random.uniform(10e9, 100e9)); };
    for (int32_t i = 0; i < 24; ++i) graph.connect(i, switches[static_cast<size_t>(i) / 8], rate(), microseconds(1));
    for (int i = 0; i < 3; ++i) graph.connect(switches[i], switches[(i + 1) % 3], rate(), microseconds(1));
    return graph;
  }

  static std::map<JobNumber, Seconds> run_all(FlowSimulator& simulator, const std::vector<Arrival>& arrivals) {
    for (const Arrival& arrival : arrivals) simulator.start(arrival.plan, arrival.at);
    return run(simulator);
  }
};

TEST_P(RandomTraffic, no_link_is_above_its_rate_and_all_bytes_arrive) {
  const Topology topology(network());
  FlowSimulator simulator(topology, {.record_link_use = true});
  const std::vector<Arrival> traffic = arrivals();
  run_all(simulator, traffic);

  double carried = 0;
  std::vector<LinkUse> last(topology.links().size());
  for (const LinkUse& use : simulator.link_use()) {
    LinkUse& before = last[static_cast<size_t>(use.link)];
    EXPECT_GE(use.time, before.time);
    EXPECT_LE(use.rate.value(), topology.link(use.link).bandwidth.value() * (1 + 1e-9));
    carried += before.rate.value() * to_seconds(use.time - before.time).value();
    before = use;
  }
  double sent = 0;
  Router router(topology, LinkRouting::shortest);
  for (const Arrival& arrival : traffic) {
    for (const Transfer& transfer : arrival.plan.stages[0].transfers) {
      sent += transfer.bytes * static_cast<double>(router.distance(transfer.from, transfer.to));
    }
  }
  EXPECT_NEAR(carried / sent, 1, 1e-8);
  for (const LinkUse& use : last) EXPECT_EQ(use.rate.value(), 0);
}

TEST_P(RandomTraffic, twice_the_bandwidth_everywhere_is_never_slower) {
  // Of more bandwidth on a single link this is not true: a flow that ends earlier frees links for rivals of others.
  const Topology slow(network()), quick(network(2));
  FlowSimulator slow_simulator(slow), quick_simulator(quick);
  std::vector<Arrival> together = arrivals();
  for (Arrival& arrival : together) arrival.at = 0;
  const auto slow_ends = run_all(slow_simulator, together);
  const auto quick_ends = run_all(quick_simulator, together);
  for (const auto& [job, end] : slow_ends) EXPECT_LE(quick_ends.at(job).value(), end.value() * (1 + 1e-9)) << job;
}

TEST_P(RandomTraffic, the_same_run_gives_the_same_picoseconds) {
  const Topology topology(network());
  FlowSimulator first(topology), second(topology);
  EXPECT_EQ(run_all(first, arrivals()), run_all(second, arrivals()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTraffic, testing::Range(0, 8));

}  // namespace foretoken::flow_simulator_test
