#include "serving/lora/lora_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/lora/lora_steps.h"
#include "serving/tiers/host_link.h"

namespace foretoken {
namespace {

constexpr Seconds copy_call(8e-6);

LoraSettings completed(LoraSettings settings) {
  if (settings.max_cpu_loras == 0) settings.max_cpu_loras = settings.max_loras;
  if (settings.rank == 0) settings.rank = settings.max_lora_rank;
  return settings;
}

}  // namespace

LoraEngine::LoraEngine(const LoraSettings& settings, ComposedStepsConfig base)
    : settings_(completed(settings)), base_(std::move(base)) {
  ensure(settings_.rank <= settings_.max_lora_rank, "an adapter fits in its slot");
}

LoraAdapter LoraEngine::adapter(int64_t rank) const {
  return {.rank = rank, .on_attention = settings_.on_attention, .on_mlp = settings_.on_mlp};
}

std::unique_ptr<StepTimes> LoraEngine::steps(StepTimes& base) const {
  return lora_steps(base, adapter(settings_.max_lora_rank), base_);
}

Bytes LoraEngine::bytes_of(const LoraAdapter& lora) const {
  Bytes most;
  for (int64_t stage = 0; stage < base_.plan.pipeline; ++stage) {
    StepRequest request{.phase = StepPhase::decode, .batch = 1, .context_len = 1};
    const Bytes plain = rank_memory(base_.model, request, base_.plan, stage).weights;
    request.lora = lora;
    most = std::max(most, rank_memory(base_.model, request, base_.plan, stage).weights - plain);
  }
  return most;
}

Bytes LoraEngine::slot_bytes() const {
  return bytes_of(adapter(settings_.max_lora_rank));
}

Bytes LoraEngine::adapter_bytes() const {
  return bytes_of(adapter(settings_.rank));
}

int64_t LoraEngine::copies() const {
  const LoraAdapter lora = adapter(settings_.max_lora_rank);
  StepRequest request{.phase = StepPhase::decode, .batch = 1, .context_len = 1};
  request.lora = lora;
  int64_t tensors = 0;
  for (const Operator& call : stage_operators(base_.model, request, base_.plan, 0)) {
    // The A matrices of q, k and v lie beside each other: as many as their width holds ranks, each with its B.
    if (!call.name.ends_with("_lora_a")) continue;
    tensors += 2 * call.count * std::get<GemmShape>(call.shape).n / std::max<int64_t>(1, lora.rank);
  }
  return tensors;
}

AdapterLoading LoraEngine::loading() const {
  const BytesPerSecond link = host_copy_bandwidth(base_.models.kernels.device(), "enable_lora");
  return {.device_slots = static_cast<size_t>(settings_.max_loras),
          .host_slots = static_cast<size_t>(settings_.max_cpu_loras),
          .from_host = copy_call * static_cast<double>(copies()) + adapter_bytes() / link,
          .from_disk = adapter_bytes() / settings_.disk_bandwidth};
}

SchedulerOptions LoraEngine::beside(SchedulerOptions options, ServingMemory& memory) const {
  options.max_loras = settings_.max_loras;
  const EngineFlags& flags = memory.flags;
  const bool sized = flags.num_gpu_blocks_override > 0 || flags.kv_cache_memory_bytes > 0;
  if (sized || memory.blocks.value == 0) return options;
  const Bytes slots = slot_bytes() * static_cast<double>(settings_.max_loras);
  const double block = memory.kv_pool.value / memory.blocks.value;
  options.num_gpu_blocks -= static_cast<int64_t>(std::ceil(slots.value() / block));
  const int64_t needed = flags.max_model_len / options.block_size + 2;
  if (options.num_gpu_blocks < needed) {
    const int64_t longest = (options.num_gpu_blocks - 2) * options.block_size;
    if (memory.shorten_context(longest)) {
      options.max_model_len = longest;
      return options;
    }
    throw InputError({.field = "max_loras",
                      .value = fmt::format("{} slots of {}", settings_.max_loras, bytes_text(slot_bytes().value())),
                      .expected = "enough memory left for one sequence of {max_model_len}",
                      .suggestion = "fewer {max_loras}, or a smaller {max_lora_rank} or {max_model_len}"});
  }
  return options;
}

}  // namespace foretoken
