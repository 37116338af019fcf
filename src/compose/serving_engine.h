// How a serving engine is set up: its flags, and what it does where they are not given.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "base/number_format.h"
#include "compose/expert_layout.h"
#include "hardware/device.h"
#include "model/model.h"
#include "model/step.h"

namespace foretoken {

// What the memory fraction of an engine is a share of.
enum class MemoryBudget {
  of_total,                // weights, activations and KV cache together share it (vLLM, gpu_memory_utilization)
  of_free_before_weights,  // weights and KV cache alone share it (SGLang, mem_fraction_static)
  of_free_after_weights    // the KV cache alone (TensorRT-LLM, free_gpu_memory_fraction)
};

// Whose command line starts it.
enum class LaunchStyle { vllm, sglang, trtllm };

// Which of DeepEP's kernels carry tokens to experts of other ranks, where the engine is told to use them.
enum class TokenSending {
  none,      // it has no DeepEP, or none that is simulated
  one_kind,  // those that its line names, for prompts and decodes alike
  by_step    // normal ones for prompts and low-latency ones for decodes
};

// What measured times to the first token were of simulated ones, nine times in ten, where they differ by more than step
// times explain.
struct FirstTokenDoubt {
  double low = 1, high = 1;
};

struct EngineFlags;

// What an engine takes where nobody says.
struct StepLimits {
  int64_t tokens, sequences;
  int64_t graph;  // EngineFlags::graph_limit
};

// Sizes of a KV cache block that an engine takes, in tokens.
enum class BlockSizes { any, multiples_of_16, powers_of_two };

// All that tells one engine, or version of it, from another. Whoever wants to know how an engine behaves asks its kind.
struct EngineKind {
  std::string_view name;  // what users type
  std::string_view summary;
  std::string_view family;  // its scheduler and stack where no others are asked for
  LaunchStyle launch;
  std::string_view fraction_name;  // what the engine calls its memory fraction
  MemoryBudget budget;
  double memory_fraction;  // default; 0 = as `fraction` works out
  double (*fraction)(double memory_bytes, const EngineFlags& flags, const ParallelPlan& plan) = nullptr;
  // The share that its guides set for ranks in lock step with DeepEP or on several nodes, where its own formula leaves
  // too little; 0 = the default holds.
  double wide_memory_fraction = 0;
  StepLimits (*limits)(double memory_gib, const Device& device, const ParallelPlan& plan);
  // Tokens of a step by the longest sequence; null = as limits say.
  int64_t (*step_tokens)(int64_t max_model_len) = nullptr;
  bool decodes_share_token_budget;  // a step's limit of tokens holds for decodes too, not for prompts alone
  bool limits_of_all_ranks;         // ranks in lock step share the limits that users give, and the engine's own
  TokenSending sends_tokens = TokenSending::none;
  bool sequences_of_each_stage = false;  // the limit of requests holds for the batch of each pipeline stage
  // Data-parallel ranks always run a mixture of experts together: without expert parallelism each expert is cut over
  // all of them.
  bool ranks_share_experts = false;
  bool
      prompts_stop_drafting_ranks;  // with drafts, ranks in lock step decode nothing while one of them computes prompts
  // Requests at once that the engine sets for this model, or where decodes verify drafts; 0 = as limits say. Null = it
  // never does.
  int64_t (*own_sequences)(const EngineFlags& flags, const Model& model) = nullptr;
  // Requests that run at once, by the tokens that the cache holds; null = the limit.
  int64_t (*running_for_pool)(const EngineFlags& flags, double pool_tokens) = nullptr;
  int64_t block_size;                             // tokens
  int64_t latent_block_size;                      // of models with latent attention: what the kernel reads
  BlockSizes block_sizes = BlockSizes::any;       // that a user may set
  bool shares_blocks;                             // blocks of all layer kinds have one size and lie in one pool
  bool graphs_in_budget;                          // CUDA graphs are set aside before the KV cache is sized
  bool captures_mixed_steps;                      // CUDA graphs of steps of any kind beside those of decodes
  int64_t (*graph_sizes_up_to)(int64_t largest);  // how many sizes it captures
  bool has_known_profile;                         // what its trial of the largest step takes was compared with logs
  bool shortens_context = false;        // starts with a cache that holds no longest sequence, for shorter ones
  bool loads_foreign_formats;           // weights that the device does not multiply in (weight_only_form)
  std::string_view rank_router;         // over data-parallel ranks
  bool decode_gives_first_token;        // where pools are apart; else the pool of prompts does
  FirstTokenDoubt doubt_of_pools = {};  // where they are apart
  FirstTokenDoubt doubt_of_ranks = {};  // in lock step
};
// As the table of software says (hardware/software.h).
bool runs_on(const EngineKind& kind, const Device& device);
std::span<const EngineKind> engine_kinds();
std::vector<std::string> engine_names();
const EngineKind& engine_kind(std::string_view name);  // InputError suggests the nearest

// Whether the engine can send tokens to experts in this format by DeepEP on such devices, where NVLink joins them.
bool can_send_tokens(const EngineKind& kind, const Device& device, Scheme experts);

// InputError, which names those that do, where the engine does not run on the device. `name` is an engine, or a
// software stack: those of no engine run anywhere.
void check_engine_runs_on(const std::string& field, std::string_view name, const Device& device);

// As users give them; 0 = the engine's own choice for the device and model. Resolved ones are of one rank.
struct EngineFlags {
  std::string engine = "vllm";
  double memory_fraction = 0;
  int64_t max_num_batched_tokens = 0;
  int64_t max_num_seqs = 0;
  int64_t max_model_len = 0;
  int64_t block_size = 0;
  int64_t num_gpu_blocks_override = 0;
  int64_t kv_cache_memory_bytes = 0;
  int64_t max_cudagraph_capture_size = 0;  // of one CUDA graph: tokens (vLLM) or decoding sequences
  int64_t graph_limit = 0;                 // the same where nobody says, by the device; no user's to give
  bool enforce_eager = false;
  bool drafts = false;  // speculative decoding is on; whoever builds the engine says so
  DType kv_dtype = DType::bf16;
};

// Every choice made. InputError for what an engine would refuse.
EngineFlags resolved(EngineFlags flags, const Model& model, const Device& device, const ParallelPlan& plan);

// Of experts' weights in memory, by an engine as users name it: "vllm-0.12", "vllm" (the newest).
ExpertLayout expert_layout(std::string_view engine, const Model& model, const Device& device);

// Memory that programs can allocate. Where nobody recorded it: the size on the box in GiB, less 2% for the driver, up
// to 8% where error correction lives in the same memory.
Estimate allocatable_bytes(const Device& device);

// Requests at once that an engine sets for this model or for drafts where nobody says, of all ranks in lock step; 0 =
// as many as its limits allow.
int64_t own_sequences(const EngineFlags& flags, const Model& model);

// Requests that an engine runs at once where nobody says, once it knows the tokens that its cache holds.
int64_t sequences_for_pool(const EngineFlags& resolved_flags, const Model& model, double pool_tokens);

// The largest CUDA graph in tokens, where each decode computes `decode_tokens` (more than one with drafts). vLLM
// captures steps of any kind, the others steps of decodes alone.
int64_t largest_graph(const EngineFlags& resolved_flags, int64_t decode_tokens = 1);

// CUDA graphs an engine captures: vLLM one per size for mixed batches and one per size for decodes, the others one per
// decode batch size. Sizes: 1, 2, 4, every 8th below 256, every 16th from there (vLLM, config/vllm.py); TensorRT-LLM
// every 8th up to 128, every 64th from there.
int64_t captured_graphs(const EngineFlags& resolved_flags);

}  // namespace foretoken
