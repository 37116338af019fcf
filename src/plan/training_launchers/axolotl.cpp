#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include "plan/training_launchers/launch_limits.h"

namespace foretoken {
namespace {

// What its support matrix leaves out (docs.axolotl.ai, N-D parallelism).
std::string unsupported_replicas(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  if (plan.sharding == Sharding::none) {
    const bool splits = p.tensor > 1 || p.context > 1;
    return splits && p.data > 1
               ? "Axolotl combines tensor and context parallelism with FSDP, not with unsharded replicas"
               : "";
  }
  const bool deepspeed = plan.sharding != Sharding::parameters;
  return deepspeed && p.context > 1 ? "Axolotl does not run context parallelism under DeepSpeed's ZeRO" : "";
}

std::string axolotl_refusal(const TrainingQuestion& question) {
  return first_reason({without_pipeline(question, "Axolotl"), without_selection(question, "Axolotl"),
                       without_low_precision(question, "Axolotl"),
                       question.plan.parallel.expert > 1 ? "the file has no expert parallelism" : "",
                       has_four_bit_weights(question) && question.plan.parallel.tensor > 1
                           ? "Axolotl is not known to divide 4-bit weights among tensor-parallel ranks"
                           : "",
                       unsupported_replicas(question.plan)});
}

std::string axolotl_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const TrainingJob& job = question.job;
  std::string text =
      fmt::format("# axolotl train this-file.yaml --launcher torchrun -- --nnodes {} --nproc-per-node {}\n",
                  launched_nodes(question), launched_devices_of_a_node(question));
  text += fmt::format(
      "base_model: {}\nsequence_len: {}\nmicro_batch_size: {}\ngradient_accumulation_steps: {}\n"
      "gradient_checkpointing: {}\n{}: true\noptimizer: adamw_torch_fused\n",
      job.model.name, job.sequence_length, plan.micro_batch, plan.micro_batches(), plan.recompute == Recompute::full,
      job.recipe.name);
  text += "datasets:  # replace with your own\n  - path: tatsu-lab/alpaca\n    type: alpaca\noutput_dir: ./outputs\n";
  // Steps are priced with full sequences.
  text += "sample_packing: true\npad_to_sequence_len: true\n";
  if (job.lora.rank > 0) {
    const bool four_bits = has_four_bit_weights(question);
    text +=
        fmt::format("adapter: {}\nlora_r: {}\nlora_alpha: {}  # replace with your own; no effect on time or memory\n",
                    four_bits ? "qlora" : "lora", job.lora.rank, 2 * job.lora.rank);
    if (four_bits) text += "load_in_4bit: true\n";
    if (job.lora.on_attention && job.lora.on_mlp) {
      text += "lora_target_linear: true\n";
    } else {
      text += fmt::format("lora_target_modules: [{}]\n",
                          job.lora.on_attention ? "q_proj, k_proj, v_proj, o_proj" : "gate_proj, up_proj, down_proj");
    }
  }
  if (plan.parallel.tensor > 1) text += fmt::format("tensor_parallel_size: {}\n", plan.parallel.tensor);
  if (plan.parallel.context > 1) text += fmt::format("context_parallel_size: {}\n", plan.parallel.context);
  if (plan.sharding == Sharding::parameters) {
    text += "fsdp_version: 2\nfsdp: [full_shard, auto_wrap]\n";
  } else if (plan.sharding != Sharding::none) {
    text += fmt::format("deepspeed: deepspeed_configs/zero{}.json\n", static_cast<int>(plan.sharding));
  }
  if (plan.shard_ranks > 0) {
    text += fmt::format("dp_replicate_size: {}\n", shard_copies(plan));
  }
  return text;
}

}  // namespace

TrainingLauncher axolotl_launcher() {
  return {.name = "axolotl",
          .summary = "YAML of Axolotl",
          .refusal = axolotl_refusal,
          .write = axolotl_file,
          .recomputes = {Recompute::none, Recompute::full},
          .has_pipelines = false,
          .recomputes_some_layers = false,
          .has_experts = false,
          .splits_four_bit_weights = false,
          .stack = "pytorch-fsdp"};
}

}  // namespace foretoken
