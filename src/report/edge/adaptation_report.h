// A device adapted from a few timings, for people and programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "base/json.h"
#include "kernel/fewshot/adapted_device.h"

namespace foretoken {

struct AdaptationReport {
  struct Architecture {
    std::vector<std::string> cells;
    std::optional<Estimate> milliseconds;  // nothing before anything was timed
  };
  struct FailedTiming {
    size_t row = 0;  // 1-based data row of the file of timings
    std::vector<std::string> cells;
    double milliseconds = 0;
  };

  const ArchitectureSpace* space = nullptr;
  size_t timings = 0;                // that were used
  std::optional<double> own_mape;    // of each timing predicted from the others
  std::vector<FailedTiming> failed;  // left out
  std::vector<AdaptedDevice::Resemblance> resembles;
  std::vector<Architecture> predicted;
  std::vector<Architecture> measure_next;  // the most useful first
};

std::string adaptation_text(const AdaptationReport& report);
Json adaptation_json(const AdaptationReport& report);
std::string adaptation_csv(const AdaptationReport& report);  // the predicted architectures

}  // namespace foretoken
