#include "network/astra_compatible/astra_run.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "network/astra_compatible/astra_events.h"

namespace foretoken::astra_run_test {

AstraRun ring_of(int64_t npus, CollectiveKind kind, int64_t bytes) {
  return {.kind = kind,
          .dimensions = {{.topology = AstraTopology::ring,
                          .algorithm = AstraAlgorithm::ring,
                          .npus = npus,
                          .bandwidth_gib_per_s = 50,
                          .latency_ns = 500}},
          .bytes = bytes,
          .splits = 4,
          .endpoint_ns = 10,
          .local_memory_gb_per_s = 1600};
}

// 4 chunks of 256 KiB, one after the other; a message of 64 KiB takes trunc(500 + 1220.7) ns, its reduction 3 x 40.
TEST(AstraRun, a_ring_pays_its_steps_and_reductions_chunk_by_chunk) {
  const int64_t chunk = 10 + 6 * (1720 + 10) + 3 * 120;
  EXPECT_EQ(astra_time(ring_of(4, CollectiveKind::all_reduce, 1 << 20)).nanoseconds, 4 * chunk);
}

TEST(AstraRun, eight_active_chunks_run_eight_times_faster_than_the_wire_allows) {
  AstraRun run = ring_of(8, CollectiveKind::reduce_scatter, 1 << 24);
  run.splits = 8;
  const int64_t one_by_one = astra_time(run).nanoseconds.value();
  run.active = 8;
  EXPECT_EQ(astra_time(run).nanoseconds.value() * 8, one_by_one);
}

TEST(AstraRun, an_all_reduce_over_two_dimensions_scatters_up_and_gathers_down) {
  AstraRun run = ring_of(4, CollectiveKind::all_reduce, 1 << 20);
  run.splits = 1;
  run.dimensions.push_back(run.dimensions.front());
  const int64_t both = astra_time(run).nanoseconds.value();
  AstraRun scatter = ring_of(4, CollectiveKind::reduce_scatter, 1 << 20);
  AstraRun middle = ring_of(4, CollectiveKind::all_reduce, 1 << 18);
  AstraRun gather = ring_of(4, CollectiveKind::all_gather, 1 << 18);
  scatter.splits = middle.splits = gather.splits = 1;
  EXPECT_EQ(both, astra_time(scatter).nanoseconds.value() + astra_time(middle).nanoseconds.value() +
                      astra_time(gather).nanoseconds.value());
}

TEST(AstraRun, bytes_that_the_splits_do_not_divide_make_one_small_chunk_more) {
  AstraRun run = ring_of(4, CollectiveKind::reduce_scatter, 1003);
  const int64_t five_chunks = astra_time(run).nanoseconds.value();
  run.bytes = 1000;
  EXPECT_GT(five_chunks, astra_time(run).nanoseconds.value());
}

TEST(AstraRun, what_depends_on_the_order_of_events_has_no_closed_form) {
  AstraRun run = ring_of(8, CollectiveKind::all_reduce, 1 << 20);
  run.queues = 2;
  EXPECT_FALSE(astra_time(run).nanoseconds.has_value());
  run.queues = 1;
  run.congestion_aware = true;
  EXPECT_TRUE(astra_time(run).nanoseconds.has_value());
  run.active = 2;
  run.dimensions.push_back(run.dimensions.front());
  EXPECT_FALSE(astra_time(run).nanoseconds.has_value());
  run.dimensions.pop_back();
  run.active = 1;
  for (const AstraAlgorithm algorithm :
       {AstraAlgorithm::direct, AstraAlgorithm::halving_doubling, AstraAlgorithm::double_binary_tree}) {
    run.dimensions[0].algorithm = algorithm;
    const AstraTime time = astra_time(run);
    EXPECT_FALSE(time.nanoseconds.has_value());
    EXPECT_FALSE(time.no_closed_form.empty());
  }
}

// The figures that ASTRA-sim publishes for its example of eight H100 behind a switch.
TEST(AstraRun, two_chunks_at_once_on_a_congested_switch_take_what_astra_sim_publishes) {
  const auto nanoseconds = [](CollectiveKind kind) {
    AstraRun run = ring_of(8, kind, 1 << 20);
    run.dimensions[0].topology = AstraTopology::network_switch;
    run.dimensions[0].bandwidth_gib_per_s = 400;
    run.dimensions[0].latency_ns = 936.25;
    run.local_memory_gb_per_s = 3350;
    run.congestion_aware = true;
    run.active = 2;
    return astra_time(run).nanoseconds;
  };
  EXPECT_EQ(nanoseconds(CollectiveKind::all_reduce), 57'426);
  EXPECT_EQ(nanoseconds(CollectiveKind::all_gather), 44'058);
  EXPECT_EQ(nanoseconds(CollectiveKind::reduce_scatter), 28'950);
  EXPECT_EQ(nanoseconds(CollectiveKind::all_to_all), 114'000);
}

TEST(AstraRun, one_chunk_by_events_takes_what_the_formula_says) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
    for (const AstraTopology topology : {AstraTopology::ring, AstraTopology::network_switch}) {
      AstraRun run = ring_of(8, kind, 1 << 20);
      run.dimensions[0].topology = topology;
      run.splits = 1;
      run.congestion_aware = true;
      const int64_t chunks[] = {run.bytes};
      const AstraEndpoint endpoint{
          .delay_ns = run.endpoint_ns, .local_memory_gb_per_s = run.local_memory_gb_per_s, .congestion_aware = true};
      EXPECT_EQ(astra_ring_nanoseconds(kind, run.dimensions[0], chunks, 2, endpoint), astra_time(run).nanoseconds);
    }
  }
}

TEST(AstraRun, what_astra_sim_would_not_finish_is_refused) {
  AstraRun run = ring_of(6, CollectiveKind::all_reduce, 1 << 20);
  run.dimensions[0].algorithm = AstraAlgorithm::halving_doubling;
  EXPECT_THROW(astra_time(run), InputError);
  EXPECT_THROW(astra_time(ring_of(8, CollectiveKind::broadcast, 1 << 20)), InputError);
  EXPECT_THROW(astra_time(ring_of(0, CollectiveKind::all_reduce, 1 << 20)), InputError);
  EXPECT_THROW(astra_time(ring_of(8, CollectiveKind::all_gather, 3)), InputError);
}

}  // namespace foretoken::astra_run_test
