#include "serving/colocation/progress_rates.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/random.h"

namespace foretoken::progress_rates_test {

constexpr StepDemand multiplies{.compute = 1, .memory = 0.12, .busy = 1},
    reads{.compute = 0.02, .memory = 1, .busy = 1};

StepDemand random_demand(RandomStream& random) {
  const double busy = random.uniform();
  return {.compute = busy * random.uniform(), .memory = busy * random.uniform(), .busy = busy};
}

DeviceShare random_share(RandomStream& random) {
  return {.processors = random.uniform(0.1, 1)};
}

TEST(SharedRates, neither_resource_gives_more_than_it_has_and_all_get_on_at_least_as_in_turn) {
  RandomStream random(1, "demands");
  for (int i = 0; i < 2000; ++i) {
    std::vector<StepDemand> demands;
    std::vector<DeviceShare> shares;
    for (uint64_t engine = 0; engine < 1 + random.below(4); ++engine) {
      demands.push_back(random_demand(random));
      shares.push_back(random_share(random));
    }
    const std::vector<double> rates = shared_rates(demands, shares);
    double compute = 0, memory = 0, busy = 0;
    for (size_t engine = 0; engine < rates.size(); ++engine) {
      compute += rates[engine] * demands[engine].compute;
      memory += rates[engine] * demands[engine].memory;
      busy += demands[engine].busy;
      EXPECT_LE(rates[engine], 1);
      EXPECT_LE(rates[engine] * demands[engine].compute, shares[engine].processors + 1e-12);
    }
    EXPECT_LE(compute, 1 + 1e-12);
    EXPECT_LE(memory, 1 + 1e-12);
    for (size_t engine = 0; engine < rates.size(); ++engine) {
      const double alone = shared_rates({&demands[engine], 1}, {&shares[engine], 1}).front();
      EXPECT_GE(rates[engine], alone / std::max(1.0, busy) - 1e-12);
      EXPECT_LE(rates[engine], alone + 1e-12);
    }
  }
}

TEST(SharedRates, an_engine_alone_on_all_of_the_device_is_not_slowed) {
  for (const StepDemand& demand : {multiplies, reads, StepDemand{}}) {
    const DeviceShare whole;
    EXPECT_EQ(shared_rates({&demand, 1}, {&whole, 1}).front(), 1);
    EXPECT_EQ(partition_rate(demand, whole), 1);
  }
}

TEST(SharedRates, two_that_want_the_same_get_half_each) {
  const DeviceShare shares[2];
  for (const StepDemand& demand : {StepDemand{.compute = 1, .memory = 0.1, .busy = 1}, reads}) {
    const StepDemand both[2] = {demand, demand};
    for (const double rate : shared_rates(both, shares)) EXPECT_DOUBLE_EQ(rate, 0.5);
  }
}

// Two streams of an H200 (data/measured/h200_sxm/README.md). Their rates are not equal there; what both do together is
// compared. dec256 is bound by neither alone and left out.
TEST(SharedRates, two_kernels_do_together_about_what_was_measured) {
  CsvReader rows(FORETOKEN_SOURCE_DIR "/data/measured/h200_sxm/sharing.csv");
  const size_t first = rows.column("first"), second = rows.column("second");
  const size_t first_rate = rows.column("first_rate"), second_rate = rows.column("second_rate");
  const DeviceShare shares[2];
  double error = 0;
  int64_t count = 0;
  while (rows.next()) {
    if (rows.cell(first) == "dec256" || rows.cell(second) == "dec256") continue;
    const StepDemand both[2] = {rows.cell(first) == "gemm" ? multiplies : reads,
                                rows.cell(second) == "gemm" ? multiplies : reads};
    const std::vector<double> rates = shared_rates(both, shares);
    const double measured = rows.number(first_rate) + rows.number(second_rate);
    error += std::abs((rates[0] + rates[1]) / measured - 1);
    EXPECT_NEAR((rates[0] + rates[1]) / measured, 1, 0.21) << rows.cell(first) << " " << rows.cell(second);
    ++count;
  }
  EXPECT_EQ(count, 8);
  EXPECT_LT(error / static_cast<double>(count), 0.1);
}

TEST(SharedRates, engines_on_processors_of_their_own_share_only_the_memory) {
  const StepDemand both[2] = {multiplies, reads};
  const DeviceShare halves[2] = {{.processors = 0.5}, {.processors = 0.5}};
  const std::vector<double> rates = shared_rates(both, halves);
  EXPECT_DOUBLE_EQ(rates[0], 0.5);
  EXPECT_NEAR(rates[1], 0.8, 0.02);
}

TEST(SharedRates, half_of_the_processors_reach_most_of_the_bandwidth) {
  EXPECT_NEAR(reachable_bandwidth(0.5), 0.8, 0.02);
  EXPECT_NEAR(reachable_bandwidth(0.25), 0.5, 0.02);
  EXPECT_EQ(reachable_bandwidth(1), 1);
  const DeviceShare half{.processors = 0.5};
  EXPECT_DOUBLE_EQ(shared_rates({&multiplies, 1}, {&half, 1}).front(), 0.5);
  EXPECT_GT(shared_rates({&reads, 1}, {&half, 1}).front(), 0.75);
}

}  // namespace foretoken::progress_rates_test
