// Does a family's efficiency port? How near its kernels come to the roofline once they are large, GPU by GPU, and how
// far the GPUs lie apart: a family that is equally efficient everywhere needs no sweep of its own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/validate.h"

namespace foretoken {

struct DeviceEfficiency {
  std::string device;
  double mean = 0;  // of roofline over measured, over the saturated rows
  size_t rows = 0;
};

struct FamilyPortability {
  std::string family;
  std::vector<DeviceEfficiency> devices;  // by name
  double efficiency = 0;                  // mean over the devices
  double spread = 0;                      // standard deviation of its logarithm over the devices; 0 with one device
};

// Gathers scored rows (as a ScoredKernelSink); what was predicted does not matter.
class PortMap {
 public:
  // Launch and latency no longer show in a kernel whose roofline is this long.
  static constexpr double saturated_seconds = 100e-6;
  // Families that are never that long: the longest tenth of a device's rows, and at least this many.
  static constexpr size_t least_rows = 20;

  void add(const ScoredKernel& scored);
  std::vector<FamilyPortability> families() const;  // by name

 private:
  struct Row {
    double roofline_seconds = 0, efficiency = 0;
  };
  std::map<std::pair<std::string, std::string>, std::vector<Row>, std::less<>> rows_;  // by family and device
};

}  // namespace foretoken
