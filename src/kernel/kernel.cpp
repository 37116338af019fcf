#include "kernel/kernel.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernel/roofline.h"

namespace foretoken {

KernelPredictor::KernelPredictor(Device device, RooflineIntervals intervals)
    : device_(std::move(device)), intervals_(std::move(intervals)) {
  if (!device_.memory_bandwidth || device_.memory_bandwidth->value.value() <= 0) {
    throw InputError({.source = device_.name,
                      .path = "memory bandwidth",
                      .value = "(not known)",
                      .expected = "a device whose memory bandwidth is known: the roofline stands on it"});
  }
  const bool any_peak = std::any_of(device_.dense_peak.begin(), device_.dense_peak.end(),
                                    [](const auto& peak) { return peak.has_value(); });
  if (!any_peak) {
    throw InputError({.source = device_.name,
                      .path = "peak FLOP/s",
                      .value = "(not known)",
                      .expected = "a device with a known peak for at least one dtype"});
  }
}

KernelEstimate KernelPredictor::estimate(const KernelShape& shape) const {
  KernelEstimate result{.work = count_work(shape)};
  const Roofline roof = roofline(shape, result.work, device_);
  result.compute = roof.compute;
  result.memory = roof.memory;
  result.waves = roof.waves;
  result.wave_efficiency = roof.wave_efficiency;
  result.bound = roof.compute > roof.memory ? Bound::compute : Bound::memory;
  const double seconds = std::max(roof.compute, roof.memory).value();
  const IntervalFactors factors = intervals_.factors(family_name(shape), seconds);
  result.seconds = {
      .value = seconds, .low = seconds * factors.low, .high = seconds * factors.high, .kind = Confidence::roofline};
  return result;
}

}  // namespace foretoken
