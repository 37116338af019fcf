// Replays a measured run of an engine, request by request, and says how far off each one is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/validation.h"
#include "compose/stack.h"
#include "hardware/catalogue.h"
#include "library/device_models.h"
#include "model/catalogue.h"
#include "serving/validate/validate_serving.h"

namespace foretoken {

struct RunValidationRequest {
  std::filesystem::path folder;     // measured_run.h
  std::filesystem::path op_tables;  // measured operators; empty = our own kernels
  std::string device;               // empty = as meta.json says
  bool own_blocks = false;          // KV blocks from first principles even where meta.json gives them
};

struct RunValidation {
  Validation errors;                             // groups ttft_ms, tpot_ms and e2e_ms
  std::map<std::string, double> error_of_means;  // percent, by group: mean predicted over mean measured
  double throughput_error = 0;                   // percent
  int64_t preemptions = 0, rejected = 0, num_gpu_blocks = 0;
};

// Requests are counted from when the engine queued them. Steps are those of a board held busy (sustained_steps.h). Our
// own kernels have intervals: of runs with all steps, and the KV blocks, at either bound. Tables have none. `sink` gets
// each request's values, in milliseconds.
RunValidation validate_run(const RunValidationRequest& request, const HardwareCatalogue& hardware,
                           const ModelCatalogue& models, const StackCatalogue& stacks,
                           const DeviceModelMaker& make_models, const ScoredServingSink& sink = {});

}  // namespace foretoken
