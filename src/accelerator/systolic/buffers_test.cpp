#include "accelerator/systolic/buffers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace foretoken::buffers_test {

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
  PrefetchingReadBuffer buffer(200, 1000, 1, in_order(1000), LateWords::physical);
  int64_t cycle = 0;
  for (int64_t address = 0; address < 1000; ++address, ++cycle) cycle += buffer.read(cycle, 0, address);
  // 100 words are there at the start; the rest comes in nine halves of 100 and a cycle of latency.
  EXPECT_EQ(buffer.finish().words, 1000);
  EXPECT_EQ(buffer.finish().last_cycle, -1 + 9 * 101);
  EXPECT_NEAR(static_cast<double>(cycle), 1000, 15);
}

TEST(PrefetchingReadBuffer, a_word_that_was_passed_comes_again_only_after_all_others) {
  PrefetchingReadBuffer buffer(200, 1000, 100, in_order(1000), LateWords::as_scalesim);
  EXPECT_EQ(buffer.read(0, 0, 5), 0);
  buffer.read(1, 0, 150);
  const int64_t before = buffer.finish().words;
  buffer.read(2, 0, 5);
  EXPECT_GE(buffer.finish().words - before, 900);
  EXPECT_EQ(buffer.read(100'000, 0, 6), 0);
}

// The same buffer, one fetch after the other.
class StepwiseBuffer {
 public:
  StepwiseBuffer(int64_t sram_words, int64_t words_per_cycle, const std::vector<int64_t>& order, LateWords late_words)
      : late_words_(late_words), order_(order) {
    words_per_line_ = (sram_words + 99) / 100;
    lines_ = static_cast<int64_t>(order.size()) / words_per_line_ + 1;
    const int64_t half = sram_words / 2;
    active_ = std::min(lines_, (half + words_per_line_ - 1) / words_per_line_);
    step_ = std::min(lines_ - active_, (half + words_per_line_ - 1) / words_per_line_);
    fetch_cycles_ = (half + words_per_cycle - 1) / words_per_cycle;
  }
  int64_t read(int64_t cycle, int64_t address) {
    int64_t wait = 0;
    while (!holds(address)) {
      start_ = (start_ + step_) % lines_;
      last_ += fetch_cycles_ + 1;
      const int64_t late = last_ - (cycle + 1 + wait);
      if (late > 0) wait += late;
      if (late_words_ == LateWords::as_scalesim) wait += late;
    }
    return wait;
  }
  int64_t last_cycle() const { return last_; }

 private:
  bool holds(int64_t address) const {
    for (int64_t i = 0; i < active_; ++i) {
      const int64_t line = (start_ + i) % lines_;
      for (int64_t word = line * words_per_line_; word < (line + 1) * words_per_line_; ++word) {
        if (word < static_cast<int64_t>(order_.size()) && order_[static_cast<size_t>(word)] == address) return true;
      }
    }
    return false;
  }
  LateWords late_words_;
  std::vector<int64_t> order_;
  int64_t words_per_line_ = 0;
  int64_t lines_ = 0;
  int64_t active_ = 0;
  int64_t step_ = 0;
  int64_t fetch_cycles_ = 0;
  int64_t start_ = 0;
  int64_t last_ = -1;
};

TEST(PrefetchingReadBuffer, several_fetches_at_once_are_the_same_as_one_after_the_other) {
  RandomStream random(7, "prefetches");
  for (int trial = 0; trial < 30; ++trial) {
    const auto sram_words = static_cast<int64_t>(100 * (1 + random.below(4)));
    const auto words_per_cycle = static_cast<int64_t>(1 + random.below(20));
    std::vector<int64_t> order;  // addresses come several times, as those of a convolution do
    for (int64_t i = 0; i < 1500; ++i) order.push_back(static_cast<int64_t>(random.below(400)));
    const LateWords late_words = trial % 2 == 0 ? LateWords::as_scalesim : LateWords::physical;
    PrefetchingReadBuffer buffer(sram_words, 400, words_per_cycle, order, late_words);
    StepwiseBuffer stepwise(sram_words, words_per_cycle, order, late_words);
    int64_t cycle = 0;
    for (int read = 0; read < 60; ++read, ++cycle) {
      const int64_t address = order[static_cast<size_t>(random.below(order.size()))];
      const int64_t wait = buffer.read(cycle, 0, address);
      ASSERT_EQ(wait, stepwise.read(cycle, address));
      ASSERT_EQ(buffer.finish().last_cycle, stepwise.last_cycle());
      cycle += std::max<int64_t>(0, wait);
    }
  }
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

}  // namespace foretoken::buffers_test
