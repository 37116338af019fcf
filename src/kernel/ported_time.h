// A kernel that was measured on one GPU, on another: the measured time, times the ratio of our estimates on both.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/estimate.h"
#include "kernel/forms/call.h"
#include "kernel/validate.h"

namespace foretoken {

// What both estimates are off by alike cancels: 1 = all of it, 0 = their errors are independent.
Estimate quotient_of(const Estimate& above, const Estimate& below, double correlation);

// How many times as long on another GPU. `there` and `here` are estimates of the same kernel.
Estimate port_ratio(const Estimate& there, const Estimate& here);

// Of kernels that were measured on both GPUs.
struct PortedPair {
  std::string from, to;
  size_t kernels = 0;
  double ported_mape = 0;     // percent, by port_ratio from the first GPU's measurement
  double estimated_mape = 0;  // by the estimate alone
  double coverage = 0;        // percent, of the ported times' 90% intervals
};

// Gathers scored rows (as a ScoredKernelSink). Rows of one kernel on one GPU count as their mean.
class PortedPairs {
 public:
  void add(const ScoredKernel& scored);
  std::vector<PortedPair> pairs() const;  // both ways, by name; of GPUs that have kernels in common

 private:
  struct Measured {
    double sum_us = 0, rows = 0;
    Estimate estimate;
    double us() const { return sum_us / rows; }
  };
  struct Kernel {
    KernelShape shape;
    std::map<std::string, Measured, std::less<>> by_device;
  };
  using Key = std::tuple<std::string, std::array<float, raw_feature_count>, int64_t>;  // the last: ScoredKernel::copied
  std::map<Key, std::vector<Kernel>> kernels_;                                         // nearly always one
};

}  // namespace foretoken
