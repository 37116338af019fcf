// What a profiled step spent: kernels by class, the host's launches, the device's gaps.
#pragma once

#include <string>
#include <vector>

#include "compose/profile/trace.h"

namespace foretoken {

struct ProfiledClass {
  std::string name;  // multiply, attention (sdpa_cudnn), elementwise (torch_add), ...
  size_t kernels = 0;
  double device_us = 0;
  double host_us = 0;  // median of host_intervals_us(); 0 = not known
};

struct ProfiledStream {
  int64_t stream = 0;
  size_t kernels = 0;
  double device_us = 0;
  double alone_us = 0;  // of it, no kernel of another stream ran
};

struct ProfileSummary {
  std::vector<ProfiledClass> classes;   // longest device time first, then by name
  std::vector<ProfiledStream> streams;  // by number
  size_t kernels = 0;
  size_t without_operator = 0;  // kernels that no operator is known for
  double device_us = 0;         // sum of all kernels
  double span_us = 0;           // from the first kernel's start to the last one's end
  double gaps_us = 0;           // of it, no kernel ran
  double launching_us = 0;      // from the first launch to the last
  bool graph = false;
};

ProfileSummary summarize_profile(const ProfiledStep& step);

}  // namespace foretoken
