#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include "plan/training_launchers/launch_limits.h"

namespace foretoken {
namespace {

// ZeRO's first two stages; FSDP is the third.
bool is_for_deepspeed(Sharding sharding) {
  return sharding == Sharding::optimizer || sharding == Sharding::gradients;
}

// What its support matrix leaves out (docs.axolotl.ai, N-D parallelism).
std::string unsupported_replicas(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  if (plan.sharding == Sharding::none) {
    const bool splits = p.tensor > 1 || p.context > 1;
    return splits && p.data > 1
               ? "Axolotl combines tensor and context parallelism with FSDP, not with unsharded replicas"
               : "";
  }
  return is_for_deepspeed(plan.sharding) && p.context > 1
             ? "Axolotl does not run context parallelism under DeepSpeed's ZeRO"
             : "";
}

// FSDP moves weights and optimizer state; activations that are recomputed leave their inputs there.
constexpr HostMemoryUse axolotl_host_memory{.weights_with_optimizer = true, .activations = true};

std::string unsupported_offloads(const TrainingQuestion& question) {
  const TrainingFormats& formats = question.formats;
  if (formats.offloaded_parameters > 0 && question.plan.sharding != Sharding::parameters) {
    return "Axolotl's file keeps weights in host memory with FSDP only";
  }
  return formats.offloaded_activations > 0 && question.plan.recompute != Recompute::full
             ? "Axolotl keeps activations in host memory with recomputation of all layers only"
             : "";
}

bool axolotl_splits_tensors(const TrainingQuestion& question) {
  return !has_quantized_base(question);
}

std::string axolotl_optimizer(const TrainingQuestion& question) {
  return has_eight_bit_moments(question) ? "ao_adamw_8bit" : "adamw_torch_fused";
}

// Weights are trained as they are loaded, in bf16. PEFT keeps adapters in fp32, and DeepSpeed has a copy in fp32.
bool trains_bf16_weights(const TrainingQuestion& question, Sharding sharding) {
  return job_in_bf16(question) && question.job.lora.rank == 0 && !is_for_deepspeed(sharding);
}

std::string unsupported_optimizer(const TrainingQuestion& question) {
  const Sharding sharding = question.plan.sharding;
  if (trains_bf16_weights(question, sharding)) return without_fp32_weights(question, "Axolotl");
  return without_other_moments(question, is_for_deepspeed(sharding) ? "Axolotl under DeepSpeed" : "Axolotl");
}

// Weights in bf16 alone are not those of DeepSpeed.
std::vector<Sharding> axolotl_shardings(const TrainingQuestion& question) {
  if (question.job.lora.rank > 0 || !has_weights_in_16_bits(question)) return {};
  return {Sharding::none, Sharding::parameters};
}

std::string axolotl_refusal(const TrainingQuestion& question) {
  return first_reason({without_pipeline(question, "Axolotl"), without_selection(question, "Axolotl"),
                       without_low_precision(question, "Axolotl"),
                       question.plan.parallel.expert > 1 ? "the file has no expert parallelism" : "",
                       !axolotl_splits_tensors(question) && question.plan.parallel.tensor > 1
                           ? fmt::format("Axolotl is not known to divide {}-bit weights among tensor-parallel ranks",
                                         has_four_bit_weights(question) ? 4 : 8)
                           : "",
                       without_other_offloads(question, "Axolotl", axolotl_host_memory), unsupported_offloads(question),
                       unsupported_optimizer(question), unsupported_replicas(question.plan)});
}

std::string axolotl_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const TrainingJob& job = question.job;
  std::string text =
      fmt::format("# axolotl train this-file.yaml --launcher torchrun -- --nnodes {} --nproc-per-node {}\n",
                  launched_nodes(question), launched_devices_of_a_node(question));
  text += fmt::format(
      "base_model: {}\nsequence_len: {}\nmicro_batch_size: {}\ngradient_accumulation_steps: {}\n"
      "gradient_checkpointing: {}\n{}: true\noptimizer: {}\n",
      job.model.name, job.sequence_length, plan.micro_batch, plan.micro_batches(),
      question.formats.offloaded_activations > 0 ? "offload"
      : plan.recompute == Recompute::full        ? "true"
                                                 : "false",
      job.recipe.name, axolotl_optimizer(question));
  if (!job.clips_gradients) text += "max_grad_norm: 0\n";
  text += "datasets:  # replace with your own\n  - path: tatsu-lab/alpaca\n    type: alpaca\noutput_dir: ./outputs\n";
  // Steps are priced with full sequences.
  text += "sample_packing: true\npad_to_sequence_len: true\n";
  if (job.lora.rank > 0) {
    const bool four_bits = has_four_bit_weights(question);
    text +=
        fmt::format("adapter: {}\nlora_r: {}\nlora_alpha: {}  # replace with your own; no effect on time or memory\n",
                    four_bits ? "qlora" : "lora", job.lora.rank, 2 * job.lora.rank);
    if (has_quantized_base(question)) text += fmt::format("load_in_{}bit: true\n", four_bits ? 4 : 8);
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
    // Axolotl reads fsdp_config without looking whether there is one.
    text +=
        "fsdp_version: 2\nfsdp: [full_shard, auto_wrap]\nfsdp_config:\n  reshard_after_forward: true\n"
        "  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    if (question.formats.offloaded_parameters > 0) text += "  offload_params: true\n";
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
          .shardings_of = axolotl_shardings,
          .has_pipelines = false,
          .recomputes_some_layers = false,
          .has_experts = false,
          .splits_tensors = axolotl_splits_tensors,
          .host_memory = axolotl_host_memory,
          .optimizer = "adam-bf16-weights",
          .stack = "transformers"};
}

}  // namespace foretoken
