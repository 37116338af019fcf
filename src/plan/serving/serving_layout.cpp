#include "plan/serving/serving_layout.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "compose/serving_engine.h"
#include "model/exchange_name.h"
#include "serving/engine/launch_flags.h"

namespace foretoken {
namespace {

std::string cut_text(const EngineChoice& engine) {
  std::string text = fmt::format("TP{}", engine.tensor);
  if (engine.attention_ranks > 1) text += fmt::format(" DP{}", engine.attention_ranks);
  if (engine.expert_parallel) text += fmt::format(" EP{}", engine.plan().expert);
  if (engine.expert_copies > 0) text += fmt::format(" ({} copies of experts)", engine.expert_copies);
  if (engine.deepep) text += " DeepEP";
  if (engine.pipeline > 1) text += fmt::format(" PP{}", engine.pipeline);
  return text;
}

std::string limits_text(const EnginePool& pool) {
  std::string text;
  if (pool.max_num_seqs > 0) text += fmt::format(", {} seqs", pool.max_num_seqs);
  if (pool.max_num_batched_tokens > 0) text += fmt::format(", {} tokens/step", pool.max_num_batched_tokens);
  if (pool.host_gib > 0) text += fmt::format(", KV offload {} GiB/GPU", pool.host_gib);
  if (pool.max_loras > 0) text += fmt::format(", {} LoRA slot{}", pool.max_loras, pool.max_loras > 1 ? "s" : "");
  return text;
}

}  // namespace

ParallelPlan EngineChoice::plan() const {
  return {.tensor = tensor,
          .pipeline = pipeline,
          .data = attention_ranks,
          .expert = expert_parallel ? tensor * attention_ranks : 1,
          .exchange = deepep ? ExpertExchange::all_to_all : ExpertExchange::all_gather,
          .exchange_kernels = deepep.value_or(ExchangeKernels::by_tokens)};
}

std::string EngineChoice::key() const {
  std::string experts = expert_parallel ? "/ep" : "";
  if (expert_copies > 0) experts += fmt::format("/copies{}", expert_copies);
  if (deepep) experts += fmt::format("/{}", deepep_name(*deepep));
  return fmt::format("{}/{}/{}/kv-{}/tp{}/pp{}/dp{}{}{}", device, engine, scheme ? facts(*scheme).name : "config",
                     dtype_name(kv_dtype), tensor, pipeline, attention_ranks, experts, speculates ? "/spec" : "");
}

std::string EnginePool::key() const {
  std::string text =
      fmt::format("{}/x{}/seqs{}/tokens{}", engine.key(), replicas, max_num_seqs, max_num_batched_tokens);
  if (host_gib > 0) text += fmt::format("/host{}", host_gib);
  if (max_loras > 0) text += fmt::format("/loras{}", max_loras);
  if (memory_fraction > 0) text += fmt::format("/memory{}", number_text(memory_fraction));
  return text;
}

double host_cache_value(const EnginePool& pool) {
  return host_cache_value(engine_kind(pool.engine.engine).launch, pool.engine.devices(),
                          gibi * static_cast<double>(pool.host_gib));
}

double host_cache_bytes(const EnginePool& pool) {
  return host_cache_bytes(engine_kind(pool.engine.engine).launch, pool.engine.devices(), host_cache_value(pool));
}

std::string ServingLayout::key() const {
  return decode ? fmt::format("prefill:{}+decode:{}", pool.key(), decode->key()) : pool.key();
}

std::string devices_text(const ServingLayout& layout) {
  std::string text = layout.pool.engine.device;
  if (layout.is_mixed()) text += " + " + layout.decode->engine.device;
  return text;
}

std::string layout_text(const ServingLayout& layout) {
  const EngineChoice& engine = layout.pool.engine;
  std::string text = fmt::format("{} x {}", layout.pool.replicas, cut_text(engine));
  if (layout.decode) {
    text += fmt::format(" prefill + {} x {} decode", layout.decode->replicas, cut_text(layout.decode->engine));
  }
  const std::string_view weights = engine.scheme ? facts(*engine.scheme).name : "as configured";
  text += fmt::format(", {}, KV {}, {}", weights, dtype_name(engine.kv_dtype), engine.engine);
  const EnginePool& limited = layout.decode ? *layout.decode : layout.pool;
  if (limited.engine.speculates) text += ", speculating";
  return text + limits_text(limited);
}

}  // namespace foretoken
