#include "kernel/ported_time.h"

#include <cmath>

#include <gtest/gtest.h>

namespace foretoken::ported_time_test {

Estimate within(double seconds, double factor) {
  return {.value = seconds, .low = seconds / factor, .high = seconds * factor};
}

TEST(PortedTime, a_ratio_cancels_what_both_estimates_are_off_by_alike) {
  const Estimate there = within(2e-3, 1.2), here = within(1e-3, 1.2);
  EXPECT_NEAR(quotient_of(there, here, 1).high, 2, 1e-12);
  EXPECT_NEAR(std::log(quotient_of(there, here, 0).high / 2), std::sqrt(2) * std::log(1.2), 1e-12);
}

TEST(PortedTime, another_gpu_is_never_known_better_than_kernels_were_found_to_port) {
  const Estimate ratio = port_ratio(exactly(2e-3), exactly(1e-3));
  EXPECT_EQ(ratio.value, 2);
  EXPECT_GT(ratio.high, 2.5);
  EXPECT_LT(ratio.low, 1.6);
  const Estimate unsure = port_ratio(within(2e-3, 3), exactly(1e-3));
  EXPECT_GT(unsure.high, 6);
}

TEST(PortedTime, pairs_of_gpus_are_scored_on_kernels_that_both_ran) {
  PortedPairs ported;
  const auto add = [&](std::string_view device, int64_t m, double measured_us, double predicted_us) {
    const KernelShape shape = GemmShape{.m = m, .n = 1024, .k = 1024};
    ScoredKernel row{.device = device, .shape = &shape, .measured_us = measured_us};
    row.predicted.seconds = within(predicted_us * 1e-6, 1.1);
    ported.add(row);
  };
  add("a", 64, 18, 10);  // estimates are half of what is measured on both
  add("a", 64, 22, 10);
  add("b", 64, 40, 20);
  add("a", 128, 50, 50);  // on `a` alone
  add("c", 256, 50, 50);  // and on `c`
  const std::vector<PortedPair> pairs = ported.pairs();
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].from + " " + pairs[0].to, "a b");
  EXPECT_EQ(pairs[1].from + " " + pairs[1].to, "b a");
  for (const PortedPair& pair : pairs) {
    EXPECT_EQ(pair.kernels, 1U);
    EXPECT_NEAR(pair.ported_mape, 0, 1e-9);
    EXPECT_NEAR(pair.estimated_mape, 50, 1e-9);
    EXPECT_EQ(pair.coverage, 100);
  }
}

}  // namespace foretoken::ported_time_test
