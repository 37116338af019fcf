#include "kernel/port_map.h"

#include <cmath>

#include <gtest/gtest.h>

namespace foretoken::port_map_test {

ScoredKernel row(std::string_view family, std::string_view device, double roofline_us, double measured_us) {
  ScoredKernel scored{.device = device, .family = family, .measured_us = measured_us};
  scored.predicted.memory = microseconds(roofline_us);
  return scored;
}

TEST(PortMap, only_kernels_long_enough_to_be_saturated_count) {
  PortMap map;
  for (int i = 0; i < 50; ++i) {
    map.add(row("gemm", "a", 1, 10));     // launch-bound: 10%
    map.add(row("gemm", "a", 200, 250));  // saturated: 80%
    map.add(row("gemm", "b", 1, 5));
    map.add(row("gemm", "b", 400, 1000));  // 40%
  }
  const std::vector<FamilyPortability> families = map.families();
  ASSERT_EQ(families.size(), 1u);
  ASSERT_EQ(families[0].devices.size(), 2u);
  EXPECT_NEAR(families[0].devices[0].mean, 0.8, 1e-12);
  EXPECT_EQ(families[0].devices[0].rows, 50u);
  EXPECT_NEAR(families[0].devices[1].mean, 0.4, 1e-12);
  EXPECT_NEAR(families[0].efficiency, 0.6, 1e-12);
  EXPECT_NEAR(families[0].spread, std::log(2.0) / 2, 1e-12);
}

TEST(PortMap, a_family_of_short_kernels_is_judged_by_its_longest_tenth) {
  PortMap map;
  for (int i = 0; i < 300; ++i) map.add(row("norm", "a", 1 + 0.01 * i, i < 270 ? 100 : 2 * (1 + 0.01 * i)));
  EXPECT_EQ(map.families()[0].devices[0].rows, 30u);
  EXPECT_NEAR(map.families()[0].efficiency, 0.5, 1e-12);
  EXPECT_EQ(map.families()[0].spread, 0) << "one device has no spread";
}

TEST(PortMap, equal_efficiency_on_all_devices_is_no_spread_however_fast_they_are) {
  PortMap map;
  for (const char* device : {"a", "b", "c"}) {
    const double speed = device[0] - 'a' + 1;
    for (int i = 0; i < 30; ++i) map.add(row("moe", device, 900 / speed, 1200 / speed));
  }
  EXPECT_NEAR(map.families()[0].spread, 0, 1e-12);
}

}  // namespace foretoken::port_map_test
