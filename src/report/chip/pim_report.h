// A program on a machine whose memory computes.
#pragma once

#include <cstdint>
#include <string>

#include "accelerator/pim/estimate.h"
#include "base/json.h"

namespace foretoken {

struct PimReport {
  const PimDevice& device;
  std::string program;
  int64_t size = 0;
  PimKernel kernel;
  PimEstimate estimate;
};

std::string pim_text(const PimReport& report);
Json pim_json(const PimReport& report);

}  // namespace foretoken
