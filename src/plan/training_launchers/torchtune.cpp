#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include "plan/training_launchers/launch_limits.h"
#include "training/import/framework_models.h"

namespace foretoken {
namespace {

std::string tune_refusal(const TrainingQuestion& question) {
  return first_reason({without_pipeline(question, "torchtune"), without_selection(question, "torchtune"),
                       without_low_precision(question, "torchtune"),
                       tune_of_model(question.job.model.name) ? "" : "torchtune has no such model",
                       question.plan.sharding == Sharding::parameters || question.plan.devices() == 1
                           ? ""
                           : "torchtune shards parameters"});
}

std::string tune_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const TrainingJob& job = question.job;
  const TuneName name = tune_of_model(job.model.name).value();
  const bool adapts = job.lora.rank > 0, four_bits = has_four_bit_weights(question);
  std::string text =
      fmt::format("# tune run --nnodes {} --nproc_per_node {} {}_finetune_distributed --config this-file\n",
                  launched_nodes(question), launched_devices_of_a_node(question), adapts ? "lora" : "full");
  text += fmt::format("model:\n  _component_: torchtune.models.{}.{}{}\n", name.module,
                      four_bits ? "qlora_"
                      : adapts  ? "lora_"
                                : "",
                      name.builder);
  if (adapts) {
    text += fmt::format("  lora_rank: {}\n  lora_attn_modules: [{}]\n  apply_lora_to_mlp: {}\n", job.lora.rank,
                        job.lora.on_attention ? "q_proj, k_proj, v_proj, output_proj" : "", job.lora.on_mlp);
  }
  text += fmt::format(
      "tokenizer:\n  max_seq_len: {}\ndataset:\n  packed: {}\nbatch_size: {}\ngradient_accumulation_steps: {}\n"
      "enable_activation_checkpointing: {}\ndtype: {}\n",
      job.sequence_length, job.packed_length > 0, plan.micro_batch, plan.micro_batches(),
      plan.recompute == Recompute::full, job.recipe.name);
  if (plan.parallel.tensor > 1) text += fmt::format("tensor_parallel_dim: {}\n", plan.parallel.tensor);
  if (plan.parallel.context > 1) text += fmt::format("context_parallel_dim: {}\n", plan.parallel.context);
  if (plan.shard_ranks > 0) {
    text += fmt::format("data_parallel_replicate_dim: {}\n", shard_copies(plan));
  }
  return text;
}

}  // namespace

TrainingLauncher torchtune_launcher() {
  return {.name = "torchtune",
          .summary = "YAML of torchtune",
          .refusal = tune_refusal,
          .write = tune_file,
          .shardings = {Sharding::parameters},
          .recomputes = {Recompute::none, Recompute::full},
          .has_pipelines = false,
          .recomputes_some_layers = false,
          .stack = "pytorch-fsdp"};
}

}  // namespace foretoken
