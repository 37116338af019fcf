#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "plan/training_launchers/launch_limits.h"

namespace foretoken {
namespace {

constexpr HostMemoryUse deepspeed_host_memory{.optimizer = true, .parameters = true};

std::string unsupported_stages(const TrainingQuestion& question) {
  const Sharding sharding = question.plan.sharding;
  if (question.formats.offloaded_parameters > 0 && sharding != Sharding::parameters) {
    return "DeepSpeed keeps weights in host memory at ZeRO's stage 3 only";
  }
  return question.formats.offloaded_optimizer > 0 && sharding == Sharding::none
             ? "DeepSpeed keeps the optimizer state in host memory at ZeRO's stages 1 to 3 only"
             : "";
}

std::string adapters_text(const TrainingQuestion& question) {
  const LoraAdapter& lora = question.job.lora;
  return fmt::format("LoRA adapters of rank {} on {}", lora.rank,
                     !lora.on_mlp         ? "the linear layers of attention"
                     : !lora.on_attention ? "the linear layers of the MLP"
                                          : "all linear layers");
}

std::vector<std::string> left_to_deepspeed_script(const TrainingQuestion& question) {
  std::vector<std::string> parts{
      fmt::format("the model {}, with sequences of {} tokens", question.job.model.name, question.job.sequence_length)};
  if (question.job.lora.rank > 0) parts.push_back(adapters_text(question));
  if (has_quantized_base(question)) {
    parts.emplace_back(has_four_bit_weights(question) ? "frozen weights in 4 bits (NF4)" : "frozen weights in 8 bits");
  }
  parts.emplace_back(question.plan.recompute == Recompute::full ? "recomputation of all layers (gradient checkpointing)"
                                                                : "no recomputation (gradient checkpointing off)");
  return parts;
}

std::string deepspeed_refusal(const TrainingQuestion& question) {
  const ParallelPlan& p = question.plan.parallel;
  return first_reason({without_pipeline(question, "DeepSpeed's file"), without_low_precision(question, "DeepSpeed"),
                       without_selection(question, "the usual script of DeepSpeed"),
                       without_other_offloads(question, "DeepSpeed", deepspeed_host_memory),
                       unsupported_stages(question), without_other_optimizers(question, "DeepSpeed"),
                       p.tensor > 1 || p.context > 1 || p.expert > 1 ? "the file has data parallelism only" : "",
                       question.plan.shard_ranks > 0 ? "DeepSpeed shards over all replicas" : ""});
}

std::string deepspeed_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  Json zero = Json::object({{"stage", static_cast<int64_t>(plan.sharding)}});
  if (question.formats.offloaded_optimizer > 0) zero.set("offload_optimizer", Json::object({{"device", "cpu"}}));
  if (question.formats.offloaded_parameters > 0) zero.set("offload_param", Json::object({{"device", "cpu"}}));
  return Json::object({{"train_batch_size", plan.global_batch},
                       {"train_micro_batch_size_per_gpu", plan.micro_batch},
                       {"gradient_accumulation_steps", plan.micro_batches()},
                       {"gradient_clipping", question.job.clips_gradients ? 1.0 : 0.0},
                       {"zero_optimization", std::move(zero)},
                       {std::string(question.job.recipe.name), Json::object({{"enabled", true}})}})
             .dump(2) +
         "\n";
}

}  // namespace

TrainingLauncher deepspeed_launcher() {
  return {.name = "deepspeed",
          .summary = "JSON of DeepSpeed",
          .refusal = deepspeed_refusal,
          .write = deepspeed_file,
          .recomputes = {Recompute::none, Recompute::full},
          .has_pipelines = false,
          .recomputes_some_layers = false,
          .has_experts = false,
          .has_model_ranks = false,
          .host_memory = deepspeed_host_memory,
          .left_to_script = left_to_deepspeed_script,
          .stack = "deepspeed"};
}

}  // namespace foretoken
