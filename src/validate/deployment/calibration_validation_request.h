// What a validation of calibration is asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace foretoken {

struct CalibrationValidationRequest {
  std::filesystem::path data;                // a table of load stages (load_stages.h) or points (serving_case.h)
  std::vector<std::filesystem::path> runs;   // or folders of single runs (vllm_run.h)
  std::vector<int64_t> stages = {1, 3};      // to calibrate from
  bool other_models = true;                  // also from all stages of the other models
  int64_t points_per_group = 8;              // of a table of points; 0 = all
  int64_t first_requests = 60;               // of a single run, to calibrate from
  std::vector<std::string> models, devices;  // only these; empty = all
  int64_t threads = 0;
  std::function<void(const std::string&)> tell = {};
};

}  // namespace foretoken
