// A run of a real engine, request by request, as LLMServingSim's benchmark records it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "compose/serving_memory.h"
#include "model/step.h"
#include "serving/request.h"

namespace foretoken {

// Seconds on the run's clock.
struct MeasuredRequest {
  double queued_s = 0, first_token_s = 0, last_token_s = 0;

  double ttft_s() const { return first_token_s - queued_s; }
  double e2e_s() const { return last_token_s - queued_s; }
};

struct MeasuredRun {
  std::string model, device;  // as meta.json names them
  EngineFlags flags;
  ParallelPlan plan;
  int64_t num_gpu_blocks = 0;          // 0 = not recorded
  std::vector<Request> requests;       // in order of arrival
  std::vector<MeasuredRequest> times;  // by id

  double end_s() const;  // of the last token
};

// A folder with meta.json (model, engine_kwargs, and kv_cache, hardware or gpu where known) and requests.csv
// (request_id, input_tokens, output_tokens, arrival_client_s, queued_s, first_token_s, last_token_s); prefix blocks
// come from a workload*.csv beside the folder. InputError for what is missing or cannot be read.
MeasuredRun read_measured_run(const std::filesystem::path& folder);

}  // namespace foretoken
