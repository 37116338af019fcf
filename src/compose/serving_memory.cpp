#include "compose/serving_memory.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/device_formats.h"
#include "compose/engine_release.h"
#include "hardware/software.h"

namespace foretoken {
namespace {

Estimate negative(const Estimate& part) {
  return {.value = -part.value, .low = -part.high, .high = -part.low, .kind = part.kind};
}

Estimate whole_part(const Estimate& count) {
  const auto floor_of = [](double value) { return std::floor(std::max(0.0, value)); };
  return {.value = floor_of(count.value), .low = floor_of(count.low), .high = floor_of(count.high), .kind = count.kind};
}

// Everything but the KV cache, by what the engine's fraction covers.
Estimate pool_of(const EngineKind& kind, const ServingMemory& memory) {
  const Estimate used[] = {memory.budget, negative(memory.weights), negative(memory.profile.peak_bytes),
                           negative(memory.runtime), kind.graphs_in_budget ? negative(memory.graphs) : exactly(0)};
  switch (kind.budget) {
    case MemoryBudget::of_total:
      return sum_of_independent(used);
    case MemoryBudget::of_free_before_weights:
      return sum_of_independent(std::vector<Estimate>{memory.budget, negative(memory.weights)});
    case MemoryBudget::of_free_after_weights:
      return memory.budget;
  }
  throw InternalError("every budget has a pool");
}

Estimate budget_of(const EngineKind& kind, const ServingMemory& memory) {
  const double fraction = memory.flags.memory_fraction;
  switch (kind.budget) {
    case MemoryBudget::of_total:
      return scaled(memory.total, fraction);
    case MemoryBudget::of_free_before_weights:
      return scaled(sum_of_independent(std::vector<Estimate>{memory.total, negative(memory.context)}), fraction);
    case MemoryBudget::of_free_after_weights: {
      const Estimate left =
          sum_of_independent(std::vector<Estimate>{memory.total, negative(memory.context), negative(memory.weights),
                                                   negative(memory.profile.peak_bytes), negative(memory.runtime)});
      return scaled(left, fraction);
    }
  }
  throw InternalError("every engine has a budget");
}

int64_t fitting_sequences(const ServingMemory& memory, double pool, double blocks, int64_t tokens_each,
                          int64_t step_tokens) {
  const CacheLayout& layout = memory.layout;
  if (layout.groups.empty()) return memory.flags.max_num_seqs;  // keeps nothing between steps
  const double each = sequence_bytes(layout, tokens_each, step_tokens).value();
  // In vLLM's pool one block is set aside to stand for "nothing".
  const double usable = layout.shared_pool ? std::max(0.0, blocks - 1) * layout.block_bytes.value() : pool;
  return static_cast<int64_t>(std::floor(std::max(0.0, usable) / each));
}

void count_blocks(ServingMemory& memory) {
  const CacheLayout& layout = memory.layout;
  const EngineFlags& flags = memory.flags;
  if (layout.groups.empty()) {
    memory.sequences = exactly(static_cast<double>(flags.max_num_seqs));
    return;
  }
  const double block = layout.block_bytes.value();
  memory.blocks = whole_part({.value = memory.kv_pool.value / block,
                              .low = memory.kv_pool.low / block,
                              .high = memory.kv_pool.high / block,
                              .kind = memory.kv_pool.kind});
  if (flags.num_gpu_blocks_override > 0) memory.blocks = exactly(static_cast<double>(flags.num_gpu_blocks_override));
  const auto sequences = [&](double pool, double blocks) {
    return static_cast<double>(
        fitting_sequences(memory, pool, blocks, flags.max_model_len, flags.max_num_batched_tokens));
  };
  memory.sequences = {.value = sequences(memory.kv_pool.value, memory.blocks.value),
                      .low = sequences(memory.kv_pool.low, memory.blocks.low),
                      .high = sequences(memory.kv_pool.high, memory.blocks.high),
                      .kind = memory.blocks.kind};
  // Blocks hold their tokens where every layer keeps them all; else what full-length sequences would bring (as vLLM
  // logs it).
  double tokens_per_block = static_cast<double>(layout.block_tokens);
  if (!layout.grows_evenly()) {
    const double each = sequence_bytes(layout, flags.max_model_len, flags.max_num_batched_tokens).value();
    tokens_per_block = static_cast<double>(flags.max_model_len) * block / each;
  }
  memory.tokens = whole_part(scaled(memory.blocks, tokens_per_block));
}

// A budget that was spent holds whatever its parts turn out to be; one that is overdrawn or set aside by a fixed pool
// does not.
Estimate unused_of(const EngineKind& kind, const ServingMemory& memory) {
  std::vector<Estimate> parts = {memory.total, negative(memory.context)};
  const bool spent =
      memory.kv_pool.value > 0 && memory.flags.kv_cache_memory_bytes == 0 && memory.flags.num_gpu_blocks_override == 0;
  if (kind.budget == MemoryBudget::of_total && spent) {
    parts.push_back(negative(memory.budget));
    if (!kind.graphs_in_budget) parts.push_back(negative(memory.graphs));
    return sum_of_independent(parts);
  }
  for (const Estimate* part : {&memory.weights, &memory.profile.peak_bytes, &memory.runtime, &memory.graphs}) {
    parts.push_back(negative(*part));
  }
  const bool fixed = memory.flags.num_gpu_blocks_override > 0;
  const double pool = fixed ? memory.blocks.value * memory.layout.block_bytes.value() : memory.kv_pool.value;
  parts.push_back(exactly(-std::max(0.0, pool)));
  return sum_of_independent(parts);
}

ServingMemory stage_memory(const Model& model, const Device& device, const ParallelPlan& plan, int64_t stage,
                           const EngineFlags& flags) {
  const EngineKind& kind = engine_kind(flags.engine);
  ServingMemory memory{.flags = flags, .stage = stage};
  const StepRequest one_token{.phase = StepPhase::prefill, .batch = 1, .input_len = 1, .kv_dtype = flags.kv_dtype};
  memory.total = allocatable_bytes(device);
  const Bytes padding = expert_layout_bytes(model, plan, stage, expert_layout(flags.engine, model, device));
  memory.weights =
      exactly((rank_memory(model, one_token, plan, stage).weights + rotary_table_bytes(model) + padding).value());
  memory.profile = profile_run(model, device, plan, stage, flags);
  memory.runtime = runtime_bytes(device, plan, stage);
  memory.context = context_bytes(device);
  memory.graph_count = captured_graphs(flags);
  memory.graphs = graph_bytes(model, plan, stage, flags);
  memory.budget = budget_of(kind, memory);
  memory.kv_pool = flags.kv_cache_memory_bytes > 0 ? exactly(static_cast<double>(flags.kv_cache_memory_bytes))
                                                   : pool_of(kind, memory);
  memory.layout = cache_layout(model, flags, plan, stage);
  count_blocks(memory);

  const double needed = sequence_bytes(memory.layout, flags.max_model_len, flags.max_num_batched_tokens).value() +
                        (memory.layout.shared_pool ? memory.layout.block_bytes.value() : 0);
  memory.starts = memory.sequences.value >= 1;
  const bool fixed = flags.num_gpu_blocks_override > 0;
  const double pool = fixed ? memory.blocks.value * memory.layout.block_bytes.value() : memory.kv_pool.value;
  memory.short_by = Bytes(memory.starts ? 0 : std::max(0.0, needed - pool));
  memory.unused = unused_of(kind, memory);
  return memory;
}

ServingMemory tightest_stage(const Model& model, const Device& device, const ParallelPlan& plan,
                             const EngineFlags& flags) {
  std::optional<ServingMemory> tightest;
  for (int64_t stage = 0; stage < plan.pipeline; ++stage) {
    ServingMemory memory = stage_memory(model, device, plan, stage, flags);
    const auto worth = [](const ServingMemory& m) { return std::pair(m.sequences.value, m.kv_pool.value); };
    if (!tightest || worth(memory) < worth(*tightest)) tightest = std::move(memory);
  }
  return *tightest;
}

bool plan_is_possible(const Model& model, const ParallelPlan& plan) {
  try {
    check_step(model, {.phase = StepPhase::prefill}, plan);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// The longest max_model_len, a multiple of `step`, of which one sequence fits.
int64_t longest_that_fits(const ServingMemory& memory, int64_t step) {
  int64_t low = 0, high = memory.flags.max_model_len / step;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (memory.sequences_of(middle * step, memory.flags.max_num_batched_tokens) >= 1) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low * step;
}

// Of engines that start all the same. Unchanged where not even one token fits.
void start_with_shorter_context(const Model& model, const Device& device, const ParallelPlan& plan,
                                ServingMemory& memory) {
  const int64_t longest = longest_that_fits(memory, 1);
  if (longest == 0) return;
  EngineFlags shorter = memory.flags;
  shorter.max_model_len = longest;
  const int64_t asked = memory.flags.max_model_len;
  memory = tightest_stage(model, device, plan, shorter);
  memory.asked_model_len = asked;
}

std::vector<Remedy> remedies_for(const Model& model, const Device& device, const ParallelPlan& plan,
                                 const ServingMemory& memory) {
  std::vector<Remedy> remedies;
  const auto try_out = [&](const Model& changed_model, const ParallelPlan& changed_plan, const EngineFlags& flags,
                           std::string change) {
    const ServingMemory tried = tightest_stage(changed_model, device, changed_plan, flags);
    if (!tried.starts) return false;
    remedies.push_back({.change = std::move(change),
                        .sequences = static_cast<int64_t>(tried.sequences.value),
                        .longest_model = flags.max_model_len});
    return true;
  };
  const EngineFlags& flags = memory.flags;
  constexpr int64_t round_length = 1024;
  if (const int64_t longest = longest_that_fits(memory, round_length); longest > 0) {
    EngineFlags shorter = flags;
    shorter.max_model_len = longest;
    try_out(model, plan, shorter, fmt::format("{{max_model_len}} {}", longest));
  }
  // The engine's own share shrinks with the number of ranks.
  if (const double usual = engine_kind(flags.engine).wide_memory_fraction; usual > flags.memory_fraction) {
    EngineFlags larger = flags;
    larger.memory_fraction = usual;
    try_out(model, plan, larger, fmt::format("{{gpu_memory_utilization}} {:g}", usual));
  }
  const auto has = [&](DType type) { return device.type_or_fallback(type) == type; };
  if (has(DType::fp8) && bytes_per_element(flags.kv_dtype) > 1) {
    EngineFlags narrow = flags;
    narrow.kv_dtype = DType::fp8;
    try_out(model, plan, narrow, "{kv_cache_dtype} fp8");
  }
  for (int64_t tokens = flags.max_num_batched_tokens / 2; tokens >= 512; tokens /= 2) {
    EngineFlags smaller = flags;
    smaller.max_num_batched_tokens = tokens;
    smaller.max_num_seqs = std::min(flags.max_num_seqs, std::max<int64_t>(1, tokens / 8));
    const std::string change =
        fmt::format("{{max_num_batched_tokens}} {} {{max_num_seqs}} {}", tokens, smaller.max_num_seqs);
    if (try_out(model, plan, smaller, change)) break;
  }
  if (bytes_per_element(model.dtype) == 2 && facts(model.scheme).weight_bytes >= 2) {
    const bool loads_fp8 = multiplies_in(device, Scheme::fp8) || weight_only_form(Scheme::fp8, device);
    const Scheme narrow = loads_fp8 ? Scheme::fp8 : has(facts(Scheme::int8).math) ? Scheme::int8 : Scheme::int4_wo;
    try_out(with_scheme(model, narrow, narrow), plan, flags, fmt::format("{{quantization}} {}", facts(narrow).name));
  }
  for (int64_t factor = 2; factor <= 16; factor *= 2) {
    ParallelPlan wider = plan;
    wider.tensor *= factor;
    if (plan.expert > 1) wider.expert *= factor;
    if (!plan_is_possible(model, wider)) continue;
    if (try_out(model, wider, flags, fmt::format("-tp {}", wider.tensor))) break;
  }
  return remedies;
}

}  // namespace

int64_t ServingMemory::sequences_of(int64_t tokens_each, int64_t step_tokens) const {
  return fitting_sequences(*this, kv_pool.value, blocks.value, tokens_each, step_tokens);
}

bool ServingMemory::shorten_context(int64_t longest) {
  if (longest < 1 || !engine_kind(flags.engine).shortens_context) return false;
  if (asked_model_len == 0) asked_model_len = flags.max_model_len;
  flags.max_model_len = longest;
  return true;
}

ServingMemory serving_memory(const Model& model, const Device& device, const ParallelPlan& plan,
                             const EngineFlags& flags, RemediesSought remedies) {
  check_step(model, {.phase = StepPhase::prefill}, plan);
  ServingMemory memory = tightest_stage(model, device, plan, resolved(flags, model, device, plan));
  if (!memory.starts && engine_kind(flags.engine).shortens_context) {
    start_with_shorter_context(model, device, plan, memory);
  }
  if (flags.max_num_seqs == 0) memory.flags.max_num_seqs = sequences_for_pool(memory.flags, model, memory.tokens.value);
  if (!memory.starts && remedies == RemediesSought::yes) memory.remedies = remedies_for(model, device, plan, memory);
  memory.model = model.name;
  memory.device = device.name;
  if (const Platform* platform = platform_of(device)) memory.platform = platform->name;
  memory.plan = plan;
  return memory;
}

std::string memory_shortage(const ServingMemory& memory) {
  const double weights = memory.weights.value, budget = memory.budget.value;
  const bool given = memory.flags.num_gpu_blocks_override > 0 || memory.flags.kv_cache_memory_bytes > 0;
  const bool covers_weights = engine_kind(memory.flags.engine).budget != MemoryBudget::of_free_after_weights;
  const double room = covers_weights ? std::min(budget, memory.total.value) : memory.total.value;
  if (!given && weights > room) {
    return fmt::format("the weights do not fit: they take {} on each GPU, but the engine may use only {} ({} short)",
                       bytes_text(weights), bytes_text(room), bytes_text(weights - room));
  }
  if (!given && memory.kv_pool.value <= 0) {
    return fmt::format("the weights ({}), activations and runtime leave no room for a KV cache ({} short)",
                       bytes_text(weights), bytes_text(memory.short_by.value()));
  }
  return fmt::format("the KV cache is {} short of one sequence of {} tokens", bytes_text(memory.short_by.value()),
                     memory.flags.max_model_len);
}

}  // namespace foretoken
