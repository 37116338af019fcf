// How fast engines get on that run on one device at the same time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace foretoken {

// What a step asks of the device while it runs alone, as shares of its time.
struct StepDemand {
  double compute = 0;  // multiply units or whole processors held
  double memory = 0;   // bandwidth held
  double busy = 0;     // kernels run at all; at least each of the above, at most 1
};

// The part of the device that an engine may use.
struct DeviceShare {
  double processors = 1;
  double bandwidth = 1;
};

// Bandwidth that a share of the processors can draw: 1 - (1 - share)^2.4, of a copy kernel on 8 to 132 processors of an
// H200 (data/measured/h200_sxm/sharing.csv): half of them reach 0.8, a quarter 0.5.
double reachable_bandwidth(double processors);

// Kernels that each fill the device hardly overlap: of the time that two could, this share is lost where they may use
// the same processors. Large multiplies beside copies or beside decode multiplies, on two streams of an H200, got on at
// rates that add up to 1.02 to 1.07 (0.95 once) where what they need would allow 1.8
// (data/measured/h200_sxm/sharing.csv).
inline constexpr double overlap_lost = 0.88;

// Rates at which the engines' steps go on, 1 = as alone on the whole device; `demands` of the steps that run now.
// Each engine alone first: what its own share cannot give a step, it waits for. Then all are slowed alike by
//   max(1, load + lost (busy - load)),  load = max(sum of compute, sum of memory),  busy = sum of busy
// where lost = overlap_lost as far as shares of the processors overlap: all of it where each engine may use all,
// nothing where shares add up to at most one. Neither resource gives more than it has, and all together get on no
// slower than one after the other. That hardware favours whose kernels were there first is left out.
std::vector<double> shared_rates(std::span<const StepDemand> demands, std::span<const DeviceShare> shares);

// The same for parts that do not touch each other (MIG).
double partition_rate(const StepDemand& demand, const DeviceShare& share);

}  // namespace foretoken
