// Several engines on one device: how they share it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "serving/colocation/progress_rates.h"
#include "serving/steps/step_times.h"

namespace foretoken {

//   time_slicing  one step at a time, engines with work in turn
//   mps           all at once, slowed by what they want of the same resources (CUDA MPS, or streams of one process)
//   mig           each has a fixed part of the device
//   swap          one model at a time is in the device's memory; the others sleep
enum class Sharing : uint8_t { time_slicing, mps, mig, swap };
std::vector<std::string> sharing_names();
Sharing sharing_from_name(std::string_view name);  // one of them
std::string_view sharing_name(Sharing sharing);

// What steps ask of a device. Not thread-safe.
class StepDemands {
 public:
  virtual ~StepDemands() = default;
  virtual StepDemand of(const StepBatch& batch) = 0;
};

// One engine of those that share.
struct ColocatedEngine {
  DeviceShare share;               // mps, mig
  StepDemands* demands = nullptr;  // mps, mig; not owned
  Seconds sleep, wake;             // swap: to leave the device, and to come back
  Bytes bytes_out, bytes_in;       // swap: that move then
};

struct Colocation {
  Sharing sharing = Sharing::time_slicing;
  Seconds switch_time = usual_switch_time;  // time_slicing: between steps of different engines
  Seconds longest_wait = Seconds(10);       // swap: a model that has waited so long is next
  std::vector<ColocatedEngine> engines;     // one for each replica of the run; `Request::model` is the index

  // Assumed: registers and shared memory of all processors of an H100 (64 MB) out and another engine's in at its memory
  // bandwidth, 0.04 ms, and as much again for what is not known. Nobody has published a figure for this generation.
  static constexpr Seconds usual_switch_time = Seconds(1e-4);
};

// What became of an engine that shared its device.
struct DeviceUse {
  double alone_s = 0;    // its steps, as alone on the device
  double busy_s = 0;     // the same as they ran, waits for others included
  int64_t switches = 0;  // times it was given the device, or came into its memory, after another
  double moved_bytes = 0;
  double slowdown() const { return alone_s > 0 ? busy_s / alone_s : 1; }
};

}  // namespace foretoken
