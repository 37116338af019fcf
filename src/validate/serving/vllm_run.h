// A run of a real engine, request by request, as LLMServingSim's benchmark records it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compose/serving_memory.h"
#include "model/step.h"
#include "network/ring_link.h"
#include "serving/engine/engine_spec.h"
#include "serving/requests/request.h"

namespace foretoken {

// Seconds on the run's clock.
struct VllmRequestTimes {
  double queued_s = 0, first_token_s = 0, last_token_s = 0;

  double ttft_s() const { return first_token_s - queued_s; }
  double e2e_s() const { return last_token_s - queued_s; }
};

struct VllmRun {
  std::string model, device;      // as meta.json names them
  std::string stack, scheduler;   // of the release of vLLM
  EngineFlags flags;              // but for the format of the KV cache
  std::optional<DType> kv_dtype;  // nothing = the model's own
  std::string quantization;       // as vLLM names it; empty = what the model's config says
  SchedulingChoices scheduling;
  std::optional<SpeculativeConfig> speculation;
  ParallelPlan plan;                    // of the whole deployment: data-parallel ranks included
  std::optional<RingLink> link;         // between the GPUs, where the run gives it
  int64_t num_gpu_blocks = 0;           // of one rank; 0 = not recorded
  std::vector<std::string> notes;       // what was assumed, or says nothing that is simulated
  std::vector<Request> requests;        // in order of arrival
  std::vector<VllmRequestTimes> times;  // by id

  double end_s() const;  // of the last token
};

// A folder with meta.json (model, engine_kwargs, and vllm_version, kv_cache, hardware or gpu where known) and
// requests.csv (request_id, input_tokens, output_tokens, arrival_client_s, queued_s, first_token_s, last_token_s);
// prefix blocks come from a workload*.csv beside the folder. engine_kwargs are vLLM's engine arguments. Read are the
// sizes of tensor, pipeline, data and expert parallelism, how tokens travel to experts, the format of the KV cache,
// quantization, the memory share, limits of tokens and sequences, blocks, prefix caching, chunked prefill, asynchronous
// scheduling, speculation (with synthetic_acceptance_* or acceptance_*, or acceptance_length beside engine_kwargs) and
// eager steps. Arguments that choose kernels are noted, those that change nothing here are passed over, and all others,
// known or not, are refused by name. vllm_version (default 0.19) says what is usual. interconnect_given is an object
// with a bandwidth (bandwidth_gb_s; or link_bw in GiB/s) and a latency of one hop (latency_us, _ns, _ms, _s; or
// link_latency in ns, as LLMServingSim's cluster files have them), or a text with both ("15 GB/s, 10 us"); noted where
// it says neither. InputError for what is missing or cannot be read.
VllmRun read_vllm_run(const std::filesystem::path& folder);

}  // namespace foretoken
