// One way to serve a model: the engine, how it is cut over devices, its number formats and limits, and how many of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/number_format.h"
#include "model/step.h"

namespace foretoken {

// All engines of a kind have the same steps, whatever their limits and however many there are.
struct EngineChoice {
  std::string device;
  std::string engine = "vllm";
  std::optional<Scheme> scheme;  // of the linear layers; nothing = as the model's config says
  DType kv_dtype = DType::bf16;
  int64_t tensor = 1, pipeline = 1;
  int64_t attention_ranks = 1;   // that share experts, each with its own queue and cache
  bool expert_parallel = false;  // experts are spread over all ranks, not cut
  // DeepEP carries tokens to experts of other ranks, with these kernels; nothing = all tokens go to all ranks.
  std::optional<ExchangeKernels> deepep = {};
  int64_t expert_copies = 0;  // more copies of experts, so that all of them divide by the ranks
  bool speculates = false;

  ParallelPlan plan() const;
  int64_t devices() const { return tensor * pipeline * attention_ranks; }
  std::string key() const;
  bool operator==(const EngineChoice&) const = default;
};

// Equal engines. Limits of 0 are the engine's own.
struct EnginePool {
  EngineChoice engine;
  int64_t replicas = 1;
  int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
  int64_t host_gib = 0;   // of host memory for each device, below the KV cache; 0 = none
  int64_t max_loras = 0;  // slots for adapters; 0 = it serves none
  double memory_fraction = 0;

  int64_t devices() const { return replicas * engine.devices(); }
  std::string key() const;
  bool operator==(const EnginePool&) const = default;
};

// Host memory of one engine below its KV cache, in whole units of the engine's flag.
double host_cache_bytes(const EnginePool& pool);
// What the flag says.
double host_cache_value(const EnginePool& pool);

struct ServingLayout {
  EnginePool pool;                   // all requests, or prompts alone
  std::optional<EnginePool> decode;  // another pool decodes

  int64_t devices() const { return pool.devices() + (decode ? decode->devices() : 0); }
  // Prompts are computed on other devices than those that decode.
  bool is_mixed() const { return decode && decode->engine.device != pool.engine.device; }
  // Names the layout in files of results: the same text for the same layout in all versions that read it alike.
  std::string key() const;
  bool operator==(const ServingLayout&) const = default;
};

// For people: "2 x TP4, fp8, vllm", "1 x TP4 prefill + 1 x TP4 decode, bf16, sglang".
std::string layout_text(const ServingLayout& layout);
std::string devices_text(const ServingLayout& layout);  // "h100_sxm", "h100_sxm + l40s"

}  // namespace foretoken
