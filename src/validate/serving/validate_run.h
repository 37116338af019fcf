// Replays a measured run of an engine, request by request, and says how far off each one is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/validation.h"
#include "serving/serving_spec.h"
#include "validate/serving/validate_serving.h"
#include "validate/serving/vllm_run.h"

namespace foretoken {

class Library;

struct RunValidationRequest {
  std::filesystem::path folder;     // vllm_run.h
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

// The run as the question that simulate_serving() is asked. Boards are held busy (sustained_steps.h). InputError names
// the field of meta.json that cannot be simulated.
struct RunSpecs {
  EngineSpec engine;
  LoadSpec load;
  DeploymentSpec deployment;
};
RunSpecs run_specs(const VllmRun& run, const RunValidationRequest& request, const Library& library);

// Requests are counted from when the engine queued them. Our own kernels have intervals: of runs with all steps, and
// the KV blocks, at either bound. Tables have none. `sink` gets each request's values, in milliseconds.
RunValidation validate_run(const RunValidationRequest& request, const Library& library, const ServingFacts& facts,
                           const ScoredServingSink& sink = {});

}  // namespace foretoken
