#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include <optional>

#include "plan/training_launchers/launch_limits.h"
#include "training/import/framework_models.h"

namespace foretoken {
namespace {

// What a file names besides the model (recipes/configs). Files are relative to the folder of the checkpoint.
struct TuneFamily {
  std::string_view module, tokenizer, model_type;
  std::string_view vocabulary_key, vocabulary, merges_key = {}, merges = {};
  std::string_view tensor_plan = {};  // of full fine-tuning; empty = it has none
};
constexpr std::string_view llama_tensor_plan = "torchtune.models.llama3.base_llama_tp_plan";
constexpr TuneFamily tune_families[] = {
    {"llama2", "llama2.llama2_tokenizer", "LLAMA2", "path", "tokenizer.model"},
    {"llama3", "llama3.llama3_tokenizer", "LLAMA3", "path", "original/tokenizer.model", "", "", llama_tensor_plan},
    {"llama3_1", "llama3.llama3_tokenizer", "LLAMA3", "path", "original/tokenizer.model", "", "", llama_tensor_plan},
    {"llama3_2", "llama3.llama3_tokenizer", "LLAMA3_2", "path", "original/tokenizer.model"},
    {"llama3_3", "llama3.llama3_tokenizer", "LLAMA3", "path", "original/tokenizer.model", "", "", llama_tensor_plan},
    {"mistral", "mistral.mistral_tokenizer", "MISTRAL", "path", "tokenizer.model"},
    {"gemma2", "gemma.gemma_tokenizer", "GEMMA2", "path", "tokenizer.model"},
    {"phi3", "phi3.phi3_mini_tokenizer", "PHI3_MINI", "path", "tokenizer.model"},
    {"phi4", "phi4.phi4_tokenizer", "PHI4", "vocab_path", "vocab.json", "merges_path", "merges.txt"},
    {"qwen2_5", "qwen2_5.qwen2_5_tokenizer", "QWEN2", "path", "vocab.json", "merges_file", "merges.txt"},
    {"qwen3", "qwen3.qwen3_tokenizer", "QWEN3", "path", "vocab.json", "merges_file", "merges.txt"}};

const TuneFamily* tune_family(std::string_view model) {
  const std::optional<TuneName> name = tune_of_model(model);
  if (!name) return nullptr;
  for (const TuneFamily& family : tune_families) {
    if (family.module == name->module) return &family;
  }
  return nullptr;
}

constexpr HostMemoryUse tune_host_memory{.weights_with_optimizer = true, .activations = true};

// lora_finetune_distributed.py refuses tensor-parallel ranks, full_finetune_distributed.py those without a plan.
bool tune_splits_tensors(const TrainingQuestion& question) {
  const TuneFamily* family = tune_family(question.job.model.name);
  return question.job.lora.rank == 0 && family != nullptr && !family->tensor_plan.empty();
}

std::string tune_refusal(const TrainingQuestion& question) {
  const LoraAdapter& lora = question.job.lora;
  return first_reason(
      {without_pipeline(question, "torchtune"), without_selection(question, "torchtune"),
       without_exchange_of_heads(question.plan, "torchtune"), without_low_precision(question, "torchtune"),
       tune_family(question.job.model.name) != nullptr ? "" : "torchtune has no such model",
       question.plan.sharding == Sharding::parameters || question.plan.devices() == 1 ? ""
                                                                                      : "torchtune shards parameters",
       question.plan.parallel.tensor == 1 || tune_splits_tensors(question) ? ""
       : lora.rank > 0 ? "torchtune's LoRA recipe has no tensor parallelism"
                       : "torchtune has no plan for tensor parallelism of this model",
       lora.rank > 0 && !lora.on_attention ? "torchtune's adapters are on attention, or on all layers" : "",
       has_four_bit_weights(question) ? "" : without_quantized_base(question, "torchtune"),
       without_other_offloads(question, "torchtune", tune_host_memory),
       question.formats.offloaded_activations > 0 && question.plan.recompute != Recompute::full
           ? "torchtune keeps activations in host memory with recomputation of all layers only"
           : "",
       job_in_bf16(question) ? without_fp32_weights(question, "torchtune")
                             : without_other_moments(question, "torchtune")});
}

std::string tune_model(const TrainingQuestion& question, const TuneName& name) {
  const LoraAdapter& lora = question.job.lora;
  const std::string component =
      fmt::format("torchtune.models.{}.{}{}", name.module, lora.rank > 0 ? "lora_" : "", name.builder);
  if (lora.rank == 0) return fmt::format("model:\n  _component_: {}\n", component);
  std::string text = fmt::format(
      "model:\n  _component_: {}\n  lora_attn_modules: [q_proj, k_proj, v_proj, output_proj]\n"
      "  apply_lora_to_mlp: {}\n  lora_rank: {}\n  lora_alpha: {}  # your own; no effect on time or memory\n",
      component, lora.on_mlp, lora.rank, 2 * lora.rank);
  if (has_four_bit_weights(question)) text += "  quantize_base: true  # NF4\n";
  return text;
}

std::string tune_files(const TrainingQuestion& question, const TuneFamily& family) {
  std::string text = "output_dir: /path/to/output\n";
  text += fmt::format("tokenizer:\n  _component_: torchtune.models.{}\n  {}: /path/to/checkpoint/{}\n",
                      family.tokenizer, family.vocabulary_key, family.vocabulary);
  if (!family.merges.empty()) text += fmt::format("  {}: /path/to/checkpoint/{}\n", family.merges_key, family.merges);
  text += fmt::format("  max_seq_len: {}\n", question.job.sequence_length);
  text += fmt::format(
      "checkpointer:\n  _component_: torchtune.training.FullModelHFCheckpointer\n"
      "  checkpoint_dir: /path/to/checkpoint\n  checkpoint_files:\n"
      "    filename_format: model-{{}}-of-{{}}.safetensors\n    max_filename: \"00001\"\n  recipe_checkpoint: null\n"
      "  output_dir: ${{output_dir}}\n  model_type: {}\nresume_from_checkpoint: false\n",
      family.model_type);
  if (question.job.lora.rank > 0) text += "save_adapter_weights_only: true\n";
  // Steps are priced with full sequences.
  return text +
         "dataset:\n  _component_: torchtune.datasets.alpaca_cleaned_dataset\n  packed: true\nseed: null\nshuffle: "
         "true\n";
}

std::string tune_step(const TrainingQuestion& question, const TuneFamily& family) {
  const TrainingPlan& plan = question.plan;
  std::string text = fmt::format(
      "optimizer:\n  _component_: {}\n  lr: 2e-5\nlr_scheduler:\n"
      "  _component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup\n  num_warmup_steps: 100\n"
      "loss:\n  _component_: torchtune.modules.loss.LinearCrossEntropyLoss\nepochs: 1\nmax_steps_per_epoch: null\n",
      has_eight_bit_moments(question) ? "torchao.optim.AdamW8bit" : "torch.optim.AdamW");
  text += fmt::format(
      "batch_size: {}\ngradient_accumulation_steps: {}\nclip_grad_norm: {}\ncompile: {}\ndevice: cuda\ndtype: {}\n"
      "enable_activation_checkpointing: {}\nenable_activation_offloading: {}\n",
      plan.micro_batch, plan.micro_batches(), question.job.clips_gradients ? "1.0" : "null",
      question.stack.name == "torchtitan", question.job.recipe.name, plan.recompute == Recompute::full,
      question.formats.offloaded_activations > 0);
  if (question.formats.offloaded_parameters > 0) text += "fsdp_cpu_offload: true\n";
  if (plan.parallel.tensor > 1) {
    text += fmt::format("tensor_parallel_dim: {}\ntensor_parallel_plan:\n  _component_: {}\n", plan.parallel.tensor,
                        family.tensor_plan);
  }
  if (plan.parallel.context > 1) {
    text += fmt::format("context_parallel_dim: {}\ncontext_parallel_rotate_method: {}\n", plan.parallel.context,
                        rotate_method(plan));
  }
  if (plan.shard_ranks > 0) text += fmt::format("data_parallel_replicate_dim: {}\n", shard_copies(plan));
  return text;
}

std::string tune_file(const TrainingQuestion& question) {
  const TuneName name = tune_of_model(question.job.model.name).value();
  const TuneFamily& family = *tune_family(question.job.model.name);
  std::string text = fmt::format(
      "# tune run --nnodes {} --nproc_per_node {} {}_finetune_distributed --config this-file\n",
      launched_nodes(question), launched_devices_of_a_node(question), question.job.lora.rank > 0 ? "lora" : "full");
  text += fmt::format(
      "# Replace with your own: /path/to/checkpoint (a download of {}), max_filename (how many files\n"
      "# it has), /path/to/output, the dataset and the learning rate.\n",
      question.job.model.name);
  text += tune_model(question, name) + tune_files(question, family) + tune_step(question, family);
  return text +
         "metric_logger:\n  _component_: torchtune.training.metric_logging.DiskLogger\n  log_dir: "
         "/path/to/output/logs\n"
         "log_every_n_steps: 1\nlog_peak_memory_stats: true\nlog_level: INFO\n";
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
          .has_experts = false,
          .splits_tensors = tune_splits_tensors,
          .host_memory = tune_host_memory,
          .optimizer = "adam-bf16-weights",
          .adapter_optimizer = "adam-bf16-weights",
          .stack = "torchtitan-eager",
          .logit_bytes = tune_chunked_logit_bytes};
}

}  // namespace foretoken
