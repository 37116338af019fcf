#include "kernel/kernel.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernel/roofline.h"

namespace foretoken {

namespace {

// A learned time may not beat the multiply units, nor DRAM where the data cannot stay in the cache.
double physical_least_seconds(const Work& work, const Roofline& roof, const Device& device) {
  const double compute = roof.compute.value() * roof.wave_efficiency;  // full waves
  const double cache = device.last_level_cache ? device.last_level_cache->value.value() : 0;
  return work.bytes().value() > 2 * cache ? std::max(compute, roof.memory.value()) : compute;
}

}  // namespace

KernelPredictor::KernelPredictor(Device device, RooflineIntervals intervals,
                                 std::shared_ptr<const LearnedKernels> learned, Tier tier)
    : device_(std::move(device)), intervals_(std::move(intervals)), learned_(std::move(learned)), tier_(tier) {
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

KernelEstimate KernelPredictor::estimate(const KernelShape& shape, std::string_view variant) const {
  KernelEstimate result{.work = count_work(shape)};
  const Roofline roof = roofline(shape, result.work, device_);
  result.compute = roof.compute;
  result.memory = roof.memory;
  result.waves = roof.waves;
  result.wave_efficiency = roof.wave_efficiency;
  result.bound = roof.compute > roof.memory ? Bound::compute : Bound::memory;
  if (learned_) {
    if (const std::optional<LearnedTime> learned = learned_->estimate(shape, variant, tier_)) {
      const double least = physical_least_seconds(result.work, roof, device_);
      result.seconds = scaled(learned->seconds, std::max(1.0, least / learned->seconds.value));
      result.tier = learned->tier;
      result.inside_envelope = learned->inside_envelope;
      return result;
    }
  }
  const double seconds = std::max(roof.compute, roof.memory).value();
  const IntervalFactors factors = intervals_.factors(family_name(shape), seconds);
  result.seconds = {
      .value = seconds, .low = seconds * factors.low, .high = seconds * factors.high, .kind = Confidence::roofline};
  return result;
}

}  // namespace foretoken
