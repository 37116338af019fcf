#include "compose/serving_engine.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "compose/device_formats.h"
#include "compose/engine_release.h"
#include "hardware/generation.h"
#include "hardware/software.h"

namespace foretoken {
namespace {

// vLLM, engine/arg_utils.py, get_batch_defaults for the server.
StepLimits vllm_limits(double memory_gib, const Device& device, const ParallelPlan& /*plan*/) {
  StepLimits limits{.tokens = 2048, .sequences = 256, .graph = vllm_graph_limit(device)};
  if (memory_gib >= 70) limits = {.tokens = 8192, .sequences = 1024, .graph = limits.graph};
  if (memory_gib >= 160) limits.tokens = 16384;
  if (device.vllm_step_tokens) limits.tokens = device.vllm_step_tokens->value;
  if (device.vllm_step_sequences) limits.sequences = device.vllm_step_sequences->value;
  return limits;
}

StepLimits vllm_limits_before_021(double memory_gib, const Device& device, const ParallelPlan& plan) {
  StepLimits limits = vllm_limits(std::min(memory_gib, 159.0), device, plan);
  limits.graph = std::min<int64_t>(limits.graph, 512);
  return limits;
}

// vLLM V0, engine/arg_utils.py: the same on every device. Of graphs, those of decodes (worker/model_runner.py).
StepLimits vllm_v0_limits(double /*memory_gib*/, const Device& /*device*/, const ParallelPlan& /*plan*/) {
  return {.tokens = 2048, .sequences = 256, .graph = 8192};
}

// vLLM V0, config.py, SchedulerConfig: prompts are whole, so a step holds the longest. Beyond 32k it cut them unasked,
// into chunks of 2,048 (512 until 0.6.4), which is what its trial of the largest step took; the scheduler here does
// not.
int64_t vllm_v0_step_tokens(int64_t max_model_len) {
  constexpr int64_t chunk = 2048, longest_whole = 32'768;
  return max_model_len > longest_whole ? chunk : std::max(max_model_len, chunk);
}

// SGLang, kv_cache_configurator.py, resolve_max_num_reqs: 512 requests for each time that the token pool holds the
// longest sequence, within these bounds.
constexpr int64_t sglang_fewest_running = 2048, sglang_most_running = 4096, sglang_running_per_length = 512;

// SGLang, server_args.py: prefill chunk and largest decode graph by GPU memory.
StepLimits sglang_limits(double memory_gib, const Device& /*device*/, const ParallelPlan& plan) {
  constexpr int64_t running = sglang_fewest_running;
  const bool wide = plan.tensor * lock_step_ranks(plan) >= 4;  // its --tp counts the ranks of attention too
  if (memory_gib < 20) return {2048, running, 8};
  if (memory_gib < 35) return {2048, running, wide ? 80 : 24};
  if (memory_gib < 60) return {4096, running, wide ? 160 : 32};
  if (memory_gib < 160) return {8192, running, wide ? 512 : 256};
  return {16384, running, 512};
}

StepLimits trtllm_limits(double /*memory_gib*/, const Device& /*device*/, const ParallelPlan& /*plan*/) {
  return {8192, 2048, 2048};
}

// SGLang, server_args.py, _handle_gpu_memory_settings: MiB kept out of the static pool for metadata, activations of all
// ranks' prompts, graphs (with more room for padding where ranks attend to requests of their own) and large groups; not
// less than 10 GiB on large cards.
double sglang_fraction(double memory_bytes, const EngineFlags& flags, const ParallelPlan& plan) {
  const double memory_mib = memory_bytes / mebi;
  const int64_t ranks = lock_step_ranks(plan);
  // Before requests at once are known.
  const auto graph =
      static_cast<double>(flags.max_cudagraph_capture_size > 0 ? flags.max_cudagraph_capture_size : flags.graph_limit);
  const int64_t prompt_tokens = std::max<int64_t>(flags.max_num_batched_tokens * ranks, 2048);
  double reserved = 512 + 1.5 * static_cast<double>(prompt_tokens) + 2 * graph +
                    static_cast<double>(plan.tensor * ranks * plan.pipeline) / 8 * 1024;
  if (ranks > 1) reserved += static_cast<double>(ranks) * graph * (graph > 300 ? 4.5 : 3);
  if (memory_mib > 60 * 1024) reserved = std::max(reserved, 10.0 * 1024);
  return std::floor(std::max(0.0, (memory_mib - reserved) / memory_mib) * 1000 + 0.5) / 1000;
}

// SGLang, arg_groups/deepseek_v4_hook.py, which comes first, and speculative_hook.py.
int64_t sglang_own_sequences(const EngineFlags& flags, const Model& model) {
  if (model.family == "deepseek_v4") return 256;
  return flags.drafts ? 48 : 0;
}

int64_t sglang_running(const EngineFlags& flags, double pool_tokens) {
  const double lengths = pool_tokens / static_cast<double>(std::max<int64_t>(1, flags.max_model_len));
  return static_cast<int64_t>(std::clamp(lengths * static_cast<double>(sglang_running_per_length),
                                         static_cast<double>(sglang_fewest_running),
                                         static_cast<double>(sglang_most_running)));
}

// As data/stacks/trtllm.json lists them.
int64_t trtllm_sizes_up_to(int64_t largest) {
  int64_t count = 0;
  for (int64_t size = 1; size <= largest; ++count) size = size < 8 ? size * 2 : size + (size < 128 ? 8 : 64);
  return count;
}

int64_t sizes_up_to(int64_t largest) {
  int64_t count = 0;
  for (int64_t size = 1; size <= largest; ++count) size = size < 8 ? size * 2 : size + (size < 256 ? 8 : 16);
  return count;
}

int64_t vllm_v0_sizes_up_to(int64_t largest) {
  int64_t count = 0;
  for (int64_t size = 1; size <= largest; ++count) size = size < 8 ? size * 2 : size + 8;
  return count;
}

constexpr EngineKind vllm = {.name = "vllm",
                             .summary = "vLLM V1 since 0.21: memory for CUDA graphs is reserved before the KV cache",
                             .family = "vllm",
                             .launch = LaunchStyle::vllm,
                             .fraction_name = "gpu-memory-utilization",
                             .budget = MemoryBudget::of_total,
                             .memory_fraction = 0.92,
                             .limits = vllm_limits,
                             .decodes_share_token_budget = true,
                             .limits_of_all_ranks = false,
                             .sends_tokens = TokenSending::one_kind,  // --all2all-backend
                             .ranks_share_experts = true,             // layers/fused_moe/config.py
                             .prompts_stop_drafting_ranks = false,
                             .block_size = 16,
                             .latent_block_size = 64,                     // FlashMLA's pages
                             .block_sizes = BlockSizes::multiples_of_16,  // of its attention kernels
                             .shares_blocks = true,
                             .graphs_in_budget = true,
                             .captures_mixed_steps = true,
                             .graph_sizes_up_to = sizes_up_to,
                             .has_known_profile = true,
                             .loads_foreign_formats = true,
                             .rank_router = "data_parallel",
                             .decode_gives_first_token = true};

constexpr EngineKind vllm_before_021() {
  EngineKind kind = vllm;
  kind.name = "vllm-0.19";
  kind.summary = "vLLM V1 from 0.8 to 0.20: CUDA graphs use memory outside gpu-memory-utilization";
  kind.memory_fraction = 0.90;
  kind.limits = vllm_limits_before_021;
  kind.graphs_in_budget = false;
  return kind;
}

constexpr EngineKind vllm_before_08() {
  EngineKind kind = vllm_before_021();
  kind.name = "vllm-0.7";
  kind.summary =
      "vLLM V0 before 0.8: 256 sequences, unsplit prompts; CUDA graphs use memory outside gpu-memory-utilization";
  kind.limits = vllm_v0_limits;
  kind.step_tokens = vllm_v0_step_tokens;
  kind.captures_mixed_steps = false;
  kind.graph_sizes_up_to = vllm_v0_sizes_up_to;
  return kind;
}

// Of 72 published points of DeepSeek-R1 behind Dynamo; chosen on every other one (94% inside), 81% of the rest inside.
constexpr FirstTokenDoubt doubt_behind_dynamo = {.low = 0.4, .high = 3.5};

// An older version of an engine is a copy with what it did otherwise.
constexpr EngineKind kinds[] = {
    vllm,
    vllm_before_021(),
    vllm_before_08(),
    {.name = "sglang",
     .summary = "SGLang: weights and the token pool share mem-fraction-static",
     .family = "sglang",
     .launch = LaunchStyle::sglang,
     .fraction_name = "mem-fraction-static",
     .budget = MemoryBudget::of_free_before_weights,
     .memory_fraction = 0,
     .fraction = sglang_fraction,
     .wide_memory_fraction = 0.85,  // docs: DeepSeek with large-scale expert parallelism and separate pools
     .limits = sglang_limits,
     .decodes_share_token_budget = false,    // prompts and decodes run in steps of their own
     .limits_of_all_ranks = true,            // --enable-dp-attention
     .sends_tokens = TokenSending::by_step,  // --moe-a2a-backend deepep, --deepep-mode auto
     .prompts_stop_drafting_ranks = true,    // managers/scheduler.py, get_next_batch_to_run
     .own_sequences = sglang_own_sequences,
     .running_for_pool = sglang_running,
     .block_size = 1,
     .latent_block_size = 1,
     .shares_blocks = false,
     .graphs_in_budget = false,
     .captures_mixed_steps = false,
     .graph_sizes_up_to = sizes_up_to,
     .has_known_profile = false,
     .shortens_context = true,  // managers/tp_worker.py: max_req_len
     .loads_foreign_formats = true,
     .rank_router = "round_robin",  // --load-balance-method
     .decode_gives_first_token = false,
     .doubt_of_pools = doubt_behind_dynamo},
    {.name = "trtllm",
     .summary = "TensorRT-LLM: the KV cache takes a fraction of the memory left by weights and activations",
     .family = "trtllm",
     .launch = LaunchStyle::trtllm,
     .fraction_name = "free-gpu-memory-fraction",
     .budget = MemoryBudget::of_free_after_weights,
     .memory_fraction = 0.90,
     .limits = trtllm_limits,
     .decodes_share_token_budget = true,
     .limits_of_all_ranks = false,
     .sequences_of_each_stage = true,  // _torch/pyexecutor/_util.py: max_num_sequences = max_batch_size * pp_size
     .prompts_stop_drafting_ranks = false,
     .block_size = 32,
     .latent_block_size = 32,
     .block_sizes = BlockSizes::powers_of_two,  // tokens_per_block
     .shares_blocks = false,
     .graphs_in_budget = false,
     .captures_mixed_steps = false,
     .graph_sizes_up_to = trtllm_sizes_up_to,
     .has_known_profile = false,
     .shortens_context = true,  // _torch/pyexecutor/resource_manager.py: _validate_and_adjust_attention_windows
     .loads_foreign_formats = false,
     .rank_router = "round_robin",
     .decode_gives_first_token = false,
     .doubt_of_pools = doubt_behind_dynamo,
     .doubt_of_ranks = {.low = 0.55, .high = 1.8}},  // 40 points, chosen in the same way
};

// Of that name, else the one that behaves as the release it names.
const EngineKind* find_kind(std::string_view name) {
  const auto named = [](std::string_view wanted) -> const EngineKind* {
    for (const EngineKind& kind : kinds) {
      if (equal_ignoring_case(kind.name, wanted)) return &kind;
    }
    return nullptr;
  };
  if (const EngineKind* kind = named(name)) return kind;
  const std::optional<EngineRelease> release = engine_release(name);
  if (!release) return nullptr;
  return named(release_behavior(release->family, release->version).kind);
}

}  // namespace

std::span<const EngineKind> engine_kinds() {
  return kinds;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const EngineKind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

const EngineKind& engine_kind(std::string_view name) {
  if (const EngineKind* kind = find_kind(name)) return *kind;
  throw InputError({.field = "engine",
                    .value = printable(name),
                    .expected = fmt::format("one of {}, or an engine with its release, such as vllm-0.12",
                                            fmt::join(engine_names(), ", ")),
                    .suggestion = nearest_name(name, engine_names()).value_or("")});
}

bool runs_on(const EngineKind& kind, const Device& device) {
  return software_runs_on(kind.family, device);
}

bool can_send_tokens(const EngineKind& kind, const Device& device, Scheme experts) {
  const bool has_kernels = experts == Scheme::fp8_block || experts == Scheme::bf16;
  // DeepEP's kernels between nodes and with low latency want a Hopper or a later GPU.
  return kind.sends_tokens != TokenSending::none && has_kernels && device.vendor == "NVIDIA" &&
         kernel_generation(device).cuda_capability >= hopper_capability;
}

void check_engine_runs_on(const std::string& field, std::string_view name, const Device& device) {
  const EngineKind* const kind = find_kind(name);
  if (kind == nullptr || runs_on(*kind, device)) return;
  std::vector<std::string_view> others;
  for (const EngineKind& other : kinds) {
    if (runs_on(other, device)) others.push_back(other.name);
  }
  if (others.empty()) {
    for (const Software& other : software_of(device)) others.push_back(other.name);
    throw InputError(
        {.field = field,
         .value = fmt::format("{} on {}", kind->name, device.name),
         .expected = fmt::format("another device: {} runs on {}, and {} runs {}, which foretoken does not simulate",
                                 kind->name, hardware_of_software(kind->family), device.name,
                                 others.empty() ? "none of the engines" : fmt::format("{}", fmt::join(others, ", ")))});
  }
  throw InputError({.field = field,
                    .value = fmt::format("{} on {}", kind->name, device.name),
                    .expected = fmt::format("an engine that supports this device: {} ({} runs on {})",
                                            fmt::join(others, ", "), kind->name, hardware_of_software(kind->family))});
}

Estimate allocatable_bytes(const Device& device) {
  if (device.allocatable_memory) return exactly(device.allocatable_memory->value.value());
  if (!device.memory) {
    throw InputError({.field = "device",
                      .value = device.name,
                      .expected = "a device whose memory size is known (memory_gb in its file)"});
  }
  // Codes that lie in the same DRAM as the data take their part before the driver offers the rest.
  const double codes = device.inline_ecc_memory ? device.inline_ecc_memory->value.value() : 0;
  const double boxed = device.memory->value.value() / giga * gibi - codes;
  return {.value = 0.98 * boxed, .low = 0.92 * boxed, .high = boxed, .kind = Confidence::extrapolated};
}

int64_t own_sequences(const EngineFlags& flags, const Model& model) {
  const EngineKind& kind = engine_kind(flags.engine);
  return kind.own_sequences == nullptr ? 0 : kind.own_sequences(flags, model);
}

namespace {

void check_block_size(const EngineKind& kind, int64_t tokens) {
  const bool is_taken = kind.block_sizes == BlockSizes::multiples_of_16 ? tokens % 16 == 0
                        : kind.block_sizes == BlockSizes::powers_of_two ? (tokens & (tokens - 1)) == 0
                                                                        : true;
  if (is_taken) return;
  throw InputError(
      {.field = "block_size",
       .value = std::to_string(tokens),
       .expected = fmt::format("{}, as {} takes it",
                               kind.block_sizes == BlockSizes::powers_of_two ? "a power of two" : "a multiple of 16",
                               kind.name)});
}

}  // namespace

ExpertLayout expert_layout(std::string_view engine, const Model& model, const Device& device) {
  const std::optional<EngineRelease> release = engine_release(engine);
  const ReleaseBehavior& behavior =
      release ? release_behavior(release->family, release->version) : release_behavior(engine_kind(engine).family, {});
  return behavior.expert_layout == nullptr ? ExpertLayout{} : behavior.expert_layout(model, device);
}

EngineFlags resolved(EngineFlags flags, const Model& model, const Device& device, const ParallelPlan& plan) {
  const EngineKind& kind = engine_kind(flags.engine);
  if (!engine_release(flags.engine)) flags.engine = kind.name;  // a release stays as it is asked for
  const double memory = allocatable_bytes(device).value;
  StepLimits limits = kind.limits(memory / gibi, device, plan);
  if (flags.max_model_len == 0) flags.max_model_len = model.max_positions > 0 ? model.max_positions : 2048;
  if (kind.step_tokens != nullptr) limits.tokens = kind.step_tokens(flags.max_model_len);
  const int64_t ranks = kind.limits_of_all_ranks ? lock_step_ranks(plan) : 1;
  const auto of_rank = [&](int64_t limit) { return std::max<int64_t>(1, limit / ranks); };
  flags.max_num_batched_tokens =
      of_rank(flags.max_num_batched_tokens > 0 ? flags.max_num_batched_tokens : limits.tokens);
  const bool decodes_count = kind.decodes_share_token_budget;
  if (const int64_t asked = flags.max_num_seqs > 0 ? flags.max_num_seqs : own_sequences(flags, model); asked > 0) {
    flags.max_num_seqs = of_rank(asked);
  } else {
    flags.max_num_seqs = decodes_count ? std::min(limits.sequences, flags.max_num_batched_tokens) : limits.sequences;
  }
  flags.graph_limit = limits.graph;
  if (flags.block_size == 0) {
    flags.block_size = model.has_latent_attention() ? kind.latent_block_size : kind.block_size;
  }
  check_block_size(kind, flags.block_size);
  if (flags.memory_fraction == 0) {
    flags.memory_fraction = kind.memory_fraction > 0 ? kind.memory_fraction : kind.fraction(memory, flags, plan);
  }
  if (decodes_count && flags.max_num_seqs > flags.max_num_batched_tokens) {
    throw InputError({.field = "max_num_seqs",
                      .value = std::to_string(flags.max_num_seqs),
                      .expected = fmt::format("at most {{max_num_batched_tokens}}, {}", flags.max_num_batched_tokens)});
  }
  return flags;
}

int64_t sequences_for_pool(const EngineFlags& flags, const Model& model, double pool_tokens) {
  const EngineKind& kind = engine_kind(flags.engine);
  if (kind.running_for_pool == nullptr || own_sequences(flags, model) > 0) return flags.max_num_seqs;
  return kind.running_for_pool(flags, pool_tokens);
}

int64_t largest_graph(const EngineFlags& flags, int64_t decode_tokens) {
  const int64_t given = flags.max_cudagraph_capture_size;
  if (engine_kind(flags.engine).captures_mixed_steps) {
    if (given > 0) return std::min(given, flags.max_num_batched_tokens);
    return std::min({2 * flags.max_num_seqs * decode_tokens, flags.graph_limit, flags.max_num_batched_tokens});
  }
  return std::min(flags.max_num_seqs, given > 0 ? given : flags.graph_limit) * decode_tokens;
}

int64_t captured_graphs(const EngineFlags& flags) {
  if (flags.enforce_eager) return 0;
  const int64_t largest = largest_graph(flags);
  const EngineKind& kind = engine_kind(flags.engine);
  const int64_t decodes = kind.graph_sizes_up_to(std::min(largest, flags.max_num_seqs));
  return kind.captures_mixed_steps ? kind.graph_sizes_up_to(largest) + decodes : kind.graph_sizes_up_to(largest);
}

}  // namespace foretoken
