#include "serving/simulation/kv_transfers.h"

#include <gtest/gtest.h>

#include "base/simulated_time.h"

namespace foretoken::kv_transfers_test {

const std::vector<KvPort> four_ports(4, {.bandwidth = BytesPerSecond(100e9), .latency = Seconds(1e-5)});

// The first.
double ends_at(KvTransfers& transfers) {
  Picoseconds now = transfers.next_event();
  while (now < end_of_time && transfers.advance(now).empty()) now = transfers.next_event();
  return to_seconds(now).value();
}

TEST(KvTransfers, a_lone_transfer_takes_latency_and_bytes_over_bandwidth) {
  KvTransfers transfers(four_ports);
  transfers.start(0, 2, 1e9, 0);
  EXPECT_NEAR(ends_at(transfers), 1e-5 + 0.01, 1e-9);
}

TEST(KvTransfers, two_to_one_replica_share_its_port) {
  KvTransfers transfers(four_ports);
  transfers.start(0, 2, 1e9, 0);
  transfers.start(1, 2, 1e9, 0);
  EXPECT_NEAR(ends_at(transfers), 1e-5 + 0.02, 1e-9);
}

TEST(KvTransfers, pairs_apart_do_not_slow_each_other) {
  KvTransfers transfers(four_ports);
  transfers.start(0, 2, 1e9, 0);
  transfers.start(1, 3, 1e9, 0);
  EXPECT_NEAR(ends_at(transfers), 1e-5 + 0.01, 1e-9);
}

TEST(KvTransfers, the_slower_end_sets_the_pace) {
  std::vector<KvPort> ports = four_ports;
  ports[2].bandwidth = BytesPerSecond(25e9);
  KvTransfers transfers(ports);
  transfers.start(0, 2, 1e9, 0);
  EXPECT_NEAR(ends_at(transfers), 1e-5 + 0.04, 1e-9);
}

TEST(KvTransfers, nothing_happens_without_one) {
  KvTransfers transfers(four_ports);
  EXPECT_EQ(transfers.next_event(), end_of_time);
  transfers.start(0, 2, 1e9, 1000);
  EXPECT_GT(transfers.next_event(), 1000);
  ends_at(transfers);
  EXPECT_EQ(transfers.next_event(), end_of_time);
}

}  // namespace foretoken::kv_transfers_test
