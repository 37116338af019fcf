// Measured calls of one form as a fit takes them, and what a fit is asked for.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "hardware/device.h"
#include "kernel/forms/list.h"

namespace foretoken {

struct MeasuredCall {
  FormCall call;
  double seconds = 0;
};

// One device's rows for one form.
struct MeasuredDevice {
  Device device;
  std::vector<MeasuredCall> rows;
  std::vector<MeasuredCall> lent;  // of FormKind::lenders
  // Call groups that stream weights at a fraction of the bandwidth: the kernel is at fault, not the device. They are
  // kept out of what ports; the measured tier learns them.
  std::set<std::string, std::less<>> pathological_groups;
  // Call groups faster than DRAM could be: they were not measured at the sizes they state. Only the measured tier
  // learns them, and they are no test of what ports.
  std::set<std::string, std::less<>> impossible_groups;
  bool withheld = false;  // by FitOptions::without
};

// What a fit leaves out of all tiers to be scored on: nothing, a fifth of each device's rows, or all rows of a fifth of
// its layers (call_layer).
enum class HoldOut { nothing, rows, layers };

struct FitOptions {
  uint64_t seed = 1;
  std::string source, date;  // kept in the files
  // Generations, or devices of them, that the cross tier must not see (generation_named). With a sweep_size, or as
  // Sweeps::withheld, they still get a measured tier: a sweep on top of constants that have never seen their kind.
  std::vector<std::string> without;
  std::vector<std::string> without_devices;  // the same, but others of their generation stay
  HoldOut hold_out = HoldOut::nothing;
  std::vector<std::string> families;       // only rows of these; empty = all
  std::vector<std::string> sweep_devices;  // measured tiers of these alone; empty = of all
  size_t sweep_size = 0;                   // measured tier: this many random rows; 0 = all
  // Measured tier from a probe: this many rows of each call group (kernel and dtype), spread evenly over predicted
  // times; 0 = no probe. Not with a sweep_size.
  size_t probe_rows = 0;
  std::function<void(const std::string&)> progress;
};

// Rows of each device that widths are made from: more would not move a quantile.
inline constexpr size_t scored_rows_per_device = 4000;

}  // namespace foretoken
