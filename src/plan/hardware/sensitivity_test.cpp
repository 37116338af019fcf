#include "plan/hardware/sensitivity.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::sensitivity_test {

Device made_up_device() {
  Device device{.name = "chip"};
  device.processors = Fact<int>{.value = 100};
  device.boost_clock = Fact<Hertz>{.value = Hertz(2e9)};
  device.memory_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(4e12)};
  device.memory = Fact<Bytes>{.value = Bytes(80e9)};
  device.dense_peak[static_cast<size_t>(DType::bf16)] = Fact<FlopsPerSecond>{.value = FlopsPerSecond(1e15)};
  return device;
}

double peak_of(const Device& device) {
  return device.dense_peak[static_cast<size_t>(DType::bf16)]->value.value();
}

TEST(DeviceChange, processors_and_clock_carry_the_peaks_with_them) {
  const Device device = made_up_device();
  EXPECT_DOUBLE_EQ(peak_of(with_factor(device, DeviceNumber::processors, 1.5)), 1.5e15);
  EXPECT_DOUBLE_EQ(peak_of(with_factor(device, DeviceNumber::clock, 0.5)), 0.5e15);
  EXPECT_DOUBLE_EQ(peak_of(with_factor(device, DeviceNumber::memory_bandwidth, 2)), 1e15);
  EXPECT_EQ(with_factor(device, DeviceNumber::processors, 1e-6).processors->value, 1);
}

TEST(DeviceChange, is_read_as_percent_factor_or_new_number) {
  const Device device = made_up_device();
  const auto factor = [&](const std::string& text) { return parse_device_change("change", text, device).factor; };
  EXPECT_DOUBLE_EQ(factor("memory-bandwidth=+20%"), 1.2);
  EXPECT_DOUBLE_EQ(factor("memory-bandwidth=-25%"), 0.75);
  EXPECT_DOUBLE_EQ(factor("clock=1.5x"), 1.5);
  EXPECT_DOUBLE_EQ(factor("clock=1000MHz"), 0.5);
  EXPECT_DOUBLE_EQ(factor("memory-bandwidth=8TB/s"), 2);
  EXPECT_DOUBLE_EQ(factor("sms=132"), 1.32);
  for (const char* wrong : {"memory-bandwidth", "memory-bandwith=+20%", "sms=", "sms=+x%", "clock=1000", "sms=-100%",
                            "sms=1e9", "link-bandwidth=+10%", "cache=2x", ""}) {
    EXPECT_THROW(factor(wrong), InputError) << wrong;
  }
}

TEST(Sensitivity, says_what_a_time_is_made_of) {
  // Nine parts bandwidth, one part peak: what the elasticities must find.
  const SecondsOnDevice seconds = [](const Device& device) {
    return 0.9 * 4e12 / device.memory_bandwidth->value.value() + 0.1 * 1e15 / peak_of(device);
  };
  const std::vector<Sensitivity> found = sensitivities(made_up_device(), seconds, std::vector<double>{1, 2});
  ASSERT_EQ(found.size(), 3U) << "no cache and no links on its sheet; memory is left out";
  EXPECT_EQ(found[0].number, DeviceNumber::memory_bandwidth);
  EXPECT_NEAR(found[0].elasticity, 0.9, 0.01);
  EXPECT_NEAR(found[1].elasticity, 0.1, 0.01);
  EXPECT_NEAR(found[0].times[0].second, 1, 1e-12);
  EXPECT_NEAR(found[0].times[1].second, 0.55, 1e-12);
}

}  // namespace foretoken::sensitivity_test
