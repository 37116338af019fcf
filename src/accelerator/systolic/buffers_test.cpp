#include "accelerator/systolic/buffers.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

// 200 words: sets of 2, halves of 100.
TEST(UnlimitedReadBuffer, words_that_fit_in_a_half_are_fetched_before_the_first_cycle) {
  UnlimitedReadBuffer buffer(200, 1000, 10);
  for (int64_t pass = 0; pass < 3; ++pass) {
    for (int64_t address = 0; address < 50; ++address) EXPECT_EQ(buffer.read(pass, 0, address), 0);
  }
  const DramTraffic traffic = buffer.finish();
  EXPECT_EQ(traffic.words, 50);
  EXPECT_EQ(traffic.first_cycle, -5);
  EXPECT_EQ(traffic.last_cycle, -1);
}

TEST(UnlimitedReadBuffer, a_full_half_is_replaced_as_a_whole) {
  UnlimitedReadBuffer buffer(200, 1000, 10);
  for (int64_t address = 0; address < 100; ++address) buffer.read(7, 0, address);
  for (int64_t address = 0; address < 30; ++address) buffer.read(8, 0, address);
  const DramTraffic traffic = buffer.finish();
  EXPECT_EQ(traffic.words, 130);
  EXPECT_EQ(traffic.first_cycle, 7 - 10);
  EXPECT_EQ(traffic.last_cycle, 8);
}

std::vector<int64_t> in_order(int64_t words) {
  std::vector<int64_t> order;
  for (int64_t address = 0; address < words; ++address) order.push_back(address);
  return order;
}

TEST(PrefetchingReadBuffer, reading_in_the_order_of_prefetches_waits_for_the_bus_alone) {
  PrefetchingReadBuffer buffer(200, 1000, 1, in_order(1000));
  int64_t cycle = 0;
  for (int64_t address = 0; address < 1000; ++address, ++cycle) cycle += buffer.read(cycle, 0, address);
  // 100 words are there at the start; the rest comes in nine halves of 100 and a cycle of latency.
  EXPECT_EQ(buffer.finish().words, 1000);
  EXPECT_EQ(buffer.finish().last_cycle, -1 + 9 * 101);
  EXPECT_NEAR(static_cast<double>(cycle), 1000, 15);
}

TEST(PrefetchingReadBuffer, a_word_that_was_passed_comes_again_only_after_all_others) {
  PrefetchingReadBuffer buffer(200, 1000, 100, in_order(1000));
  EXPECT_EQ(buffer.read(0, 0, 5), 0);
  buffer.read(1, 0, 150);
  const int64_t before = buffer.finish().words;
  buffer.read(2, 0, 5);
  EXPECT_GE(buffer.finish().words - before, 900);
  EXPECT_EQ(buffer.read(100'000, 0, 6), 0);
}

TEST(WriteBuffer, words_drain_half_an_sram_at_a_time_and_all_of_them_in_the_end) {
  WriteBuffer buffer(200, 10);
  for (int64_t cycle = 0; cycle < 30; ++cycle) EXPECT_EQ(buffer.write(cycle, 10), 0);
  const DramTraffic traffic = buffer.finish(30);
  EXPECT_EQ(traffic.first_cycle, 10);  // the word after the first hundred
  EXPECT_GE(traffic.words, 300);
  EXPECT_LE(traffic.words, 310);  // lines that a drain cut short count as full
}

TEST(WriteBuffer, a_slow_bus_makes_the_array_wait_once_the_sram_is_full) {
  WriteBuffer buffer(200, 1);
  int64_t waited = 0;
  for (int64_t cycle = 0; cycle < 100; ++cycle) waited += buffer.write(cycle + waited, 10);
  const DramTraffic traffic = buffer.finish(100 + waited);
  EXPECT_EQ(traffic.words, 1000);
  EXPECT_GT(waited, 500);
  EXPECT_LT(waited, 1000);
}

}  // namespace
}  // namespace foretoken
