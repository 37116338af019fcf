// A sweep of this machine's CPU and the predictor that follows from it.
#pragma once

#include <string>

#include "app/cli/grammar/command.h"

namespace foretoken {

struct CpuProfileRequest {
  std::string out;     // folder for kernels.csv and predictor.json; empty = none is written
  std::string device;  // name of the processor; empty = as the machine calls it
  std::string date;
  int64_t threads = 0;  // also measure speedups on up to so many; 0 = the machine's cores
  bool quick = false;
  bool plan = false;  // say which kernels would be measured, and measure nothing
};

// The processor of this machine, as Linux says it: by its name on x86, by the numbers of maker and part on Arm.
std::string processor_name();

Answer profile_cpu(const CpuProfileRequest& request);

}  // namespace foretoken
