// One operator on one device -> seconds. The roofline tier lives here; learned tiers multiply its terms.
#pragma once

#include "base/estimate.h"
#include "base/units.h"
#include "hardware/device.h"
#include "kernel/roofline_intervals.h"
#include "model/shapes.h"
#include "model/work.h"

namespace foretoken {

enum class Bound { compute, memory };

struct KernelEstimate {
  Estimate seconds;  // value: the roofline; interval: where measurements lie relative to it
  Work work;
  Seconds compute;  // FLOPs at the dense peak, stretched by partial last waves
  Seconds memory;   // least bytes at DRAM bandwidth
  Bound bound = Bound::memory;
  double waves = 0;            // output tiles over processors; 0 where the family has no tile grid
  double wave_efficiency = 1;  // share of the tile slots that hold a tile
};

// Predicts kernels on one device. Cheap to copy per device; estimate() is const and safe to call from many threads.
class KernelPredictor {
 public:
  // InputError when the device's sheet lacks what even a roofline needs (memory bandwidth, any peak).
  explicit KernelPredictor(Device device, RooflineIntervals intervals = {});

  const Device& device() const { return device_; }

  // InputError when the shape cannot run there (no peak for its dtype, and no wider type to fall back to).
  KernelEstimate estimate(const KernelShape& shape) const;

 private:
  Device device_;
  RooflineIntervals intervals_;
};

}  // namespace foretoken
