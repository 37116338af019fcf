#include "plan/training_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/json.h"
#include "plan/megatron_flags.h"
#include "training/import/framework_models.h"

namespace foretoken {
namespace {

int64_t accumulation_of(const TrainingPlan& plan) {
  return plan.micro_batches();
}

int64_t nodes_of(const TrainingQuestion& question) {
  const int64_t per_node = devices_per_node(question.cluster);
  return (question.plan.devices() + per_node - 1) / per_node;
}

int64_t devices_of_a_node(const TrainingQuestion& question) {
  return std::min<int64_t>(question.plan.devices(), devices_per_node(question.cluster));
}

// ---- what several frameworks cannot do ----------------------------------------------------------------------------

std::string without_adapters(const TrainingQuestion& question, std::string_view framework) {
  if (question.job.lora.rank == 0) return "";
  return fmt::format("{} trains no adapters", framework);
}

std::string without_pipeline(const TrainingQuestion& question, std::string_view framework) {
  if (question.plan.stages() == 1) return "";
  return fmt::format("{} has no pipeline parallelism", framework);
}

// Whole layers or nothing.
std::string without_selection(const TrainingQuestion& question, std::string_view framework) {
  const TrainingPlan& plan = question.plan;
  const bool some = plan.recompute == Recompute::full && plan.recompute_layers > 0;
  if (!some && (plan.recompute == Recompute::none || plan.recompute == Recompute::full)) return "";
  return fmt::format("{} recomputes all layers or none", framework);
}

std::string without_low_precision(const TrainingQuestion& question, std::string_view framework) {
  const std::string_view name = question.job.recipe.name;
  if (name == "bf16" || name == "fp16") return "";
  return fmt::format("{} does not train in {}", framework, name);
}

std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

// ---- Megatron-LM --------------------------------------------------------------------------------------------------

std::string megatron_refusal(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const bool known_schedule = plan.stages() == 1 || plan.schedule == "1f1b" || plan.schedule == "interleaved";
  return first_of({without_adapters(question, "Megatron-LM's pretrain_gpt.py"),
                   known_schedule ? "" : fmt::format("Megatron-LM has no schedule like {}", plan.schedule),
                   plan.recompute == Recompute::op ? "Megatron-LM has no recomputation by operator" : ""});
}

InputError no_format_like(std::string_view recipe, std::string_view framework) {
  return InputError({.field = "precision",
                     .value = std::string(recipe),
                     .expected = fmt::format("a format that {} has a setting for", framework)});
}

std::string megatron_precision(std::string_view recipe) {
  constexpr std::pair<std::string_view, std::string_view> flags[] = {
      {"bf16", "--bf16"},
      {"fp16", "--fp16"},
      {"fp8", "--bf16 --fp8-format hybrid --fp8-recipe tensorwise"},
      {"fp8-delayed", "--bf16 --fp8-format hybrid --fp8-recipe delayed"},
      {"fp8-current", "--bf16 --fp8-format hybrid --fp8-recipe tensorwise"},
      {"fp8-block", "--bf16 --fp8-format e4m3 --fp8-recipe blockwise"},
      {"mxfp8", "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8"},
      {"nvfp4", "--bf16 --fp4-format e2m1"}};
  for (const auto& [name, text] : flags) {
    if (name == recipe) return std::string(text);
  }
  throw no_format_like(recipe, "Megatron-LM");
}

// Sizes of a model whose layers are alike; others need the arguments of their own recipe.
std::string megatron_sizes(const TrainingQuestion& question) {
  const Model& model = question.job.model;
  const Layer& layer = model.layers.back();
  const auto* attention = std::get_if<Attention>(&layer.mixer);
  const auto* mlp = std::get_if<Mlp>(&layer.feed_forward);
  const auto* moe = std::get_if<Moe>(&layer.feed_forward);
  const bool alike = std::ranges::all_of(model.layers, [&](const Layer& other) { return other == layer; });
  if (attention == nullptr || (mlp == nullptr && moe == nullptr) || !alike) return "";
  std::string text = fmt::format(
      "--num-layers {} --hidden-size {} --num-attention-heads {} --kv-channels {} --ffn-hidden-size {} --vocab-size {}",
      model.layers.size(), model.hidden, attention->heads, attention->head_dim,
      mlp != nullptr ? mlp->width : moe->width, model.vocabulary);
  if (attention->kv_heads < attention->heads) {
    text += fmt::format(" --group-query-attention --num-query-groups {}", attention->kv_heads);
  }
  if (mlp != nullptr ? mlp->gated : moe->gated) text += " --swiglu";
  if (!layer.layer_norm) text += " --normalization RMSNorm";
  if (!attention->output_bias) text += " --disable-bias-linear";
  if (attention->qk_norm) text += " --qk-layernorm";
  if (!model.tied_embeddings) text += " --untie-embeddings-and-output-weights";
  if (model.position_rows == 0) text += " --position-embedding-type rope";
  if (moe != nullptr) {
    text += fmt::format(" --num-experts {} --moe-router-topk {} --moe-ffn-hidden-size {} --moe-grouped-gemm",
                        moe->experts, moe->top_k, moe->width);
    if (moe->shared_width > 0) text += fmt::format(" --moe-shared-expert-intermediate-size {}", moe->shared_width);
  }
  return text;
}

std::string megatron_script(const TrainingQuestion& question) {
  const std::string sizes = megatron_sizes(question);
  std::string text = fmt::format("#!/bin/bash\n# {}\n", question.job.model.name);
  if (sizes.empty()) text += "# Add the model's own arguments: its layers differ from each other.\n";
  text += fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py \\\n", nodes_of(question),
                      devices_of_a_node(question));
  if (!sizes.empty()) text += fmt::format("    {} \\\n", sizes);
  return text + fmt::format("    --seq-length {} --max-position-embeddings {} {} \\\n    {}{} \\\n    \"$@\"\n",
                            question.job.sequence_length,
                            std::max(question.job.model.max_positions, question.job.sequence_length),
                            megatron_precision(question.job.recipe.name), megatron_flags(question.plan),
                            question.formats.offloaded_optimizer > 0 ? " --optimizer-cpu-offload" : "");
}

// ---- Megatron-Bridge ----------------------------------------------------------------------------------------------

std::string bridge_refusal(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const bool known_schedule = plan.stages() == 1 || plan.schedule == "1f1b" || plan.schedule == "interleaved";
  return first_of({known_schedule ? "" : fmt::format("Megatron-Bridge has no schedule like {}", plan.schedule),
                   plan.recompute == Recompute::op ? "Megatron-Bridge has no recomputation by operator" : "",
                   plan.layout.empty() ? "" : "its file is read without the layout of stages"});
}

std::string bridge_precision(std::string_view recipe) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"bf16", "bf16_mixed"},
      {"fp16", "fp16_mixed"},
      {"fp8", "bf16_with_fp8_current_scaling_mixed"},
      {"fp8-delayed", "bf16_with_fp8_delayed_scaling_mixed"},
      {"fp8-current", "bf16_with_fp8_current_scaling_mixed"},
      {"fp8-block", "bf16_with_fp8_subchannel_scaling_mixed"},
      {"mxfp8", "bf16_with_mxfp8_mixed"},
      {"nvfp4", "bf16_with_nvfp4_mixed"}};
  for (const auto& [name, text] : names) {
    if (name == recipe) return std::string(text);
  }
  throw no_format_like(recipe, "Megatron-Bridge");
}

std::string bridge_sharding(const TrainingPlan& plan) {
  constexpr std::string_view strategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
  std::string text = "ddp:\n";
  text += fmt::format("  use_distributed_optimizer: {}\n", plan.sharding != Sharding::none);
  if (plan.sharding > Sharding::optimizer) {
    text += fmt::format("  use_megatron_fsdp: true\n  data_parallel_sharding_strategy: {}\n",
                        strategies[static_cast<size_t>(plan.sharding)]);
  }
  if (plan.shard_ranks > 0) {
    text += fmt::format("  num_distributed_optimizer_instances: {}\n",
                        plan.parallel.data * plan.parallel.context / plan.shard_ranks);
  }
  return text;
}

std::string bridge_recompute(const TrainingPlan& plan) {
  if (plan.recompute == Recompute::none) return "";
  if (plan.recompute == Recompute::selective) {
    std::string modules;
    for (size_t i = 0; i < layer_module_count; ++i) {
      const auto module = static_cast<LayerModule>(i);
      if (plan.recompute_modules.has(module)) {
        modules += fmt::format("{}{}", modules.empty() ? "" : ", ", layer_module_name(module));
      }
    }
    return fmt::format("  recompute_granularity: selective\n  recompute_modules: [{}]\n", modules);
  }
  const bool some = plan.recompute_layers > 0;
  return fmt::format("  recompute_granularity: full\n  recompute_method: {}\n  recompute_num_layers: {}\n",
                     some ? "block" : "uniform", some ? plan.recompute_layers : 1);
}

std::string bridge_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const ParallelPlan& p = plan.parallel;
  std::string text = fmt::format(
      "# Overrides of Megatron-Bridge's recipe of {}, for {} nodes of {} GPUs\nmodel:\n  seq_length: {}\n"
      "  tensor_model_parallel_size: {}\n  pipeline_model_parallel_size: {}\n  context_parallel_size: {}\n"
      "  expert_model_parallel_size: {}\n  sequence_parallel: {}\n",
      question.job.model.name, nodes_of(question), devices_of_a_node(question), question.job.sequence_length, p.tensor,
      p.pipeline, p.context, p.expert, p.sequence && p.tensor > 1);
  if (plan.virtual_stages > 1) {
    text += fmt::format("  virtual_pipeline_model_parallel_size: {}\n", plan.virtual_stages);
  }
  if (plan.embedding_in_split) text += "  account_for_embedding_in_pipeline_split: true\n";
  if (plan.loss_in_split) text += "  account_for_loss_in_pipeline_split: true\n";
  text += bridge_recompute(plan);
  text += fmt::format("train:\n  micro_batch_size: {}\n  global_batch_size: {}\nmixed_precision: {}\n",
                      plan.micro_batch, plan.global_batch, bridge_precision(question.job.recipe.name));
  text += bridge_sharding(plan);
  if (question.formats.offloaded_optimizer > 0) text += "optimizer:\n  optimizer_cpu_offload: true\n";
  if (question.job.lora.rank > 0) text += fmt::format("peft:\n  dim: {}\n", question.job.lora.rank);
  return text;
}

// ---- torchtitan ---------------------------------------------------------------------------------------------------

std::string titan_schedule(const TrainingPlan& plan) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"1f1b", "1F1B"}, {"gpipe", "GPipe"}, {"interleaved", "Interleaved1F1B"}, {"zb-v", "ZBVZeroBubble"}};
  for (const auto& [name, theirs] : names) {
    if (name == plan.schedule) return std::string(theirs);
  }
  return "";
}

std::string titan_refusal(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const std::string_view recipe = question.job.recipe.name;
  const bool known_recipe = recipe == "bf16" || recipe == "fp8" || recipe == "fp8-current" || recipe == "mxfp8";
  const bool some_layers = plan.recompute == Recompute::full && plan.recompute_layers > 0;
  return first_of({without_adapters(question, "torchtitan"),
                   titan_of_model(question.job.model.name) ? "" : "torchtitan has no such model",
                   plan.sharding == Sharding::none || plan.sharding == Sharding::parameters
                       ? ""
                       : "torchtitan shards parameters or nothing",
                   plan.recompute == Recompute::selective || some_layers
                       ? "torchtitan recomputes all layers, every other multiply, or nothing"
                       : "",
                   plan.stages() == 1 || !titan_schedule(plan).empty()
                       ? ""
                       : fmt::format("torchtitan has no schedule like {}", plan.schedule),
                   plan.virtual_stages > 2 ? "torchtitan's usual split has at most two chunks on a stage" : "",
                   known_recipe ? "" : fmt::format("torchtitan does not train in {}", recipe)});
}

std::string titan_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const ParallelPlan& p = plan.parallel;
  const TitanName name = titan_of_model(question.job.model.name).value();
  const std::string_view recipe = question.job.recipe.name;
  const bool sharded = plan.sharding == Sharding::parameters;
  const int64_t copies = !sharded ? p.data : plan.shard_ranks > 0 ? p.data * p.context / plan.shard_ranks : 1;
  std::string text = fmt::format("# NGPU={} CONFIG_FILE=this-file.toml ./run_train.sh, on {} nodes\n",
                                 devices_of_a_node(question), nodes_of(question));
  text += fmt::format("[model]\nname = \"{}\"\nflavor = \"{}\"\n", name.name, name.flavor);
  if (recipe != "bf16") text += fmt::format("converters = [\"{}\"]\n", recipe == "mxfp8" ? "mx" : "float8");
  text += fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                      p.pipeline > 1 ? plan.micro_batch * accumulation_of(plan) : plan.micro_batch, plan.global_batch,
                      question.job.sequence_length);
  text += fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\npipeline_parallel_degree = {}\ncontext_parallel_degree = {}\n"
      "expert_parallel_degree = {}\n",
      copies, sharded ? -1 : 1, p.tensor, p.pipeline, p.context, p.expert);
  if (p.pipeline > 1) {
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                        titan_schedule(plan), plan.micro_batch);
  }
  const std::string_view mode = plan.recompute == Recompute::none   ? "none"
                                : plan.recompute == Recompute::full ? "full"
                                                                    : "selective";
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n", mode);
  return text + fmt::format("\n[compile]\nenable = {}\n", question.stack.name == "torchtitan");
}

// ---- Axolotl and torchtune ----------------------------------------------------------------------------------------

std::string axolotl_refusal(const TrainingQuestion& question) {
  return first_of({without_pipeline(question, "Axolotl"), without_selection(question, "Axolotl"),
                   without_low_precision(question, "Axolotl"),
                   question.plan.parallel.expert > 1 ? "the file has no expert parallelism" : ""});
}

std::string axolotl_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const TrainingJob& job = question.job;
  std::string text =
      fmt::format("# axolotl train this-file.yaml --launcher torchrun -- --nnodes {} --nproc-per-node {}\n",
                  nodes_of(question), devices_of_a_node(question));
  text += fmt::format(
      "base_model: {}\nsequence_len: {}\nmicro_batch_size: {}\ngradient_accumulation_steps: {}\n"
      "gradient_checkpointing: {}\n{}: true\noptimizer: adamw_torch_fused\n",
      job.model.name, job.sequence_length, plan.micro_batch, accumulation_of(plan), plan.recompute == Recompute::full,
      job.recipe.name);
  if (job.packed_length > 0) text += "sample_packing: true\n";
  if (job.lora.rank > 0) {
    const bool four_bits = question.formats.frozen_weight_bytes < 1;
    text += fmt::format("adapter: {}\nlora_r: {}\n", four_bits ? "qlora" : "lora", job.lora.rank);
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
    text += fmt::format("dp_replicate_size: {}\n", plan.parallel.data * plan.parallel.context / plan.shard_ranks);
  }
  return text;
}

std::string tune_refusal(const TrainingQuestion& question) {
  return first_of({without_pipeline(question, "torchtune"), without_selection(question, "torchtune"),
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
  const bool adapts = job.lora.rank > 0, four_bits = adapts && question.formats.frozen_weight_bytes < 1;
  std::string text =
      fmt::format("# tune run --nnodes {} --nproc_per_node {} {}_finetune_distributed --config this-file\n",
                  nodes_of(question), devices_of_a_node(question), adapts ? "lora" : "full");
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
      job.sequence_length, job.packed_length > 0, plan.micro_batch, accumulation_of(plan),
      plan.recompute == Recompute::full, job.recipe.name);
  if (plan.parallel.tensor > 1) text += fmt::format("tensor_parallel_dim: {}\n", plan.parallel.tensor);
  if (plan.parallel.context > 1) text += fmt::format("context_parallel_dim: {}\n", plan.parallel.context);
  if (plan.shard_ranks > 0) {
    text +=
        fmt::format("data_parallel_replicate_dim: {}\n", plan.parallel.data * plan.parallel.context / plan.shard_ranks);
  }
  return text;
}

// ---- DeepSpeed ----------------------------------------------------------------------------------------------------

std::string deepspeed_refusal(const TrainingQuestion& question) {
  const ParallelPlan& p = question.plan.parallel;
  return first_of({without_pipeline(question, "DeepSpeed's file"), without_low_precision(question, "DeepSpeed"),
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
                       {"gradient_accumulation_steps", accumulation_of(plan)},
                       {"zero_optimization", std::move(zero)},
                       {std::string(question.job.recipe.name), Json::object({{"enabled", true}})}})
             .dump(2) +
         "\n";
}

}  // namespace

std::span<const TrainingLauncher> training_launchers() {
  using enum Recompute;
  static const TrainingLauncher list[] = {
      {"megatron-lm", "a script of Megatron-LM's pretrain_gpt.py", megatron_refusal, megatron_script, {}, {}},
      {"megatron-bridge", "YAML of Megatron-Bridge (NeMo)", bridge_refusal, bridge_file, {}, {}},
      {"torchtitan",
       "TOML of torchtitan",
       titan_refusal,
       titan_file,
       {Sharding::none, Sharding::parameters},
       {none, op, full},
       true,
       false},
      {"axolotl", "YAML of Axolotl", axolotl_refusal, axolotl_file, {}, {none, full}, false, false},
      {"torchtune", "YAML of torchtune", tune_refusal, tune_file, {Sharding::parameters}, {none, full}, false, false},
      {"deepspeed", "JSON of DeepSpeed", deepspeed_refusal, deepspeed_file, {}, {none, full}, false, false},
  };
  return list;
}

std::vector<std::string> training_launcher_names() {
  std::vector<std::string> names;
  for (const TrainingLauncher& launcher : training_launchers()) names.emplace_back(launcher.name);
  return names;
}

const TrainingLauncher* find_training_launcher(std::string_view name) {
  for (const TrainingLauncher& launcher : training_launchers()) {
    if (launcher.name == name) return &launcher;
  }
  return nullptr;
}

PlanChoices choices_of(const TrainingLauncher& launcher, PlanChoices choices) {
  if (!launcher.shardings.empty() && choices.shardings.size() > 1) choices.shardings = launcher.shardings;
  if (!launcher.recomputes.empty() && choices.recomputes.size() > 1) choices.recomputes = launcher.recomputes;
  if (!launcher.has_pipelines && !choices.pipeline) choices.pipeline = 1;
  if (!launcher.recomputes_some_layers) choices.parts_of_layers = 1;
  return choices;
}

}  // namespace foretoken
