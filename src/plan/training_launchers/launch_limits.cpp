#include "plan/training_launchers/launch_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken {

int64_t launched_nodes(const TrainingQuestion& question) {
  const int64_t per_node = devices_per_node(question.cluster);
  return (question.plan.devices() + per_node - 1) / per_node;
}

int64_t launched_devices_of_a_node(const TrainingQuestion& question) {
  return std::min<int64_t>(question.plan.devices(), devices_per_node(question.cluster));
}

int64_t shard_copies(const TrainingPlan& plan) {
  return plan.parallel.data * plan.parallel.context / plan.shard_ranks;
}

std::string_view rotate_method(const TrainingPlan& plan) {
  return plan.context_exchange == ContextExchange::ring ? "alltoall" : "allgather";
}

std::string without_adapters(const TrainingQuestion& question, std::string_view framework) {
  if (question.job.lora.rank == 0) return "";
  return fmt::format("{} trains no adapters", framework);
}

std::string without_pipeline(const TrainingQuestion& question, std::string_view framework) {
  if (question.plan.stages() == 1) return "";
  return fmt::format("{} has no pipeline parallelism", framework);
}

std::string without_other_schedules(const TrainingPlan& plan, std::string_view framework) {
  if (plan.stages() == 1 || plan.schedule == "1f1b" || plan.schedule == "interleaved") return "";
  return fmt::format("{} has no schedule like {}", framework, plan.schedule);
}

std::string without_selection(const TrainingQuestion& question, std::string_view framework) {
  const TrainingPlan& plan = question.plan;
  const bool some = plan.recompute == Recompute::full && plan.recompute_layers > 0;
  if (!some && (plan.recompute == Recompute::none || plan.recompute == Recompute::full)) return "";
  return fmt::format("{} recomputes all layers or none", framework);
}

std::string without_exchange_of_heads(const TrainingPlan& plan, std::string_view framework) {
  if (plan.parallel.context == 1 || plan.context_exchange != ContextExchange::all_to_all) return "";
  return fmt::format(
      "the context parallelism of {} has no all-to-all over heads: use {{cp_comm_type}} ring or all_gather", framework);
}

std::string without_low_precision(const TrainingQuestion& question, std::string_view framework) {
  const std::string_view name = question.job.recipe.name;
  if (name == "bf16" || name == "fp16") return "";
  return fmt::format("{} does not train in {}", framework, name);
}

bool has_quantized_base(const TrainingQuestion& question) {
  const TrainingJob& job = question.job;
  return job.lora.rank > 0 && question.formats.frozen_weight_bytes <
                                  usual_formats(job.recipe, job.lora, question.stack.attention).frozen_weight_bytes;
}

bool has_weights_in_16_bits(const TrainingQuestion& question) {
  const OptimizerState& state = question.formats.optimizer;
  return state.moments == 2 && state.moment_bytes <= 2 && state.master_bytes == 0;
}

bool has_eight_bit_moments(const TrainingQuestion& question) {
  const OptimizerState& state = question.formats.optimizer;
  return state.moments == 2 && state.moment_bytes == 1;
}

std::string without_quantized_base(const TrainingQuestion& question, std::string_view framework) {
  if (!has_quantized_base(question)) return "";
  return fmt::format("{} does not keep the frozen weights under adapters in {} bits", framework,
                     has_four_bit_weights(question) ? 4 : 8);
}

std::string without_other_offloads(const TrainingQuestion& question, std::string_view framework,
                                   const HostMemoryUse& host_memory) {
  const TrainingFormats& formats = question.formats;
  const bool optimizer = formats.offloaded_optimizer > 0, parameters = formats.offloaded_parameters > 0;
  if (formats.offloaded_activations > 0 && !host_memory.activations) {
    return fmt::format("{} does not keep activations in host memory", framework);
  }
  if (host_memory.weights_with_optimizer) {
    if (optimizer != parameters) {
      return fmt::format("{} keeps weights and optimizer state in host memory together or not at all", framework);
    }
  } else if (optimizer && !host_memory.optimizer) {
    return fmt::format("{} does not keep the optimizer state in host memory", framework);
  } else if (parameters && !host_memory.parameters) {
    return fmt::format("{} does not keep the weights in host memory", framework);
  }
  const auto is_part = [](double share) { return share > 0 && share < 1; };
  if ((is_part(formats.offloaded_optimizer) && !host_memory.parts_of_optimizer) ||
      is_part(formats.offloaded_activations)) {
    return fmt::format("{} has no setting for a part in host memory", framework);
  }
  return "";
}

std::string without_other_optimizers(const TrainingQuestion& question, std::string_view framework) {
  const OptimizerState &state = question.formats.optimizer, adam;
  const bool same_copy = state.master_bytes > 0;
  if (same_copy && state.moments == adam.moments && state.moment_bytes == adam.moment_bytes) return "";
  return fmt::format("the file of {} can only ask for Adam with fp32 master weights and fp32 moments", framework);
}

bool job_in_bf16(const TrainingQuestion& question) {
  return question.job.recipe.name == "bf16";
}

std::string without_other_moments(const TrainingQuestion& question, std::string_view framework) {
  const bool has_copy = !has_weights_in_16_bits(question);
  return has_copy && has_eight_bit_moments(question) ? "" : without_other_optimizers(question, framework);
}

std::string without_fp32_weights(const TrainingQuestion& question, std::string_view framework) {
  if (has_weights_in_16_bits(question)) return "";
  return fmt::format(
      "the file of {} can only train bf16 weights without an fp32 copy: use {{optimizer}} adam-bf16-weights or "
      "adam-8bit-bf16-weights",
      framework);
}

std::string first_reason(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

std::string unsharded_offload(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  return question.formats.offloaded_optimizer > 0 && plan.sharding == Sharding::none && plan.sharded_over() > 1
             ? "Megatron-Core keeps the optimizer state in host memory only where it is sharded"
             : "";
}

TrainingPlan plan_for_megatron(const TrainingQuestion& question) {
  TrainingPlan plan = question.plan;
  if (question.formats.offloaded_optimizer > 0 && plan.sharding == Sharding::none) plan.sharding = Sharding::optimizer;
  return plan;
}

InputError no_format_like(std::string_view recipe, std::string_view framework) {
  return InputError({.field = "precision",
                     .value = std::string(recipe),
                     .expected = fmt::format("a format that {} has a setting for", framework)});
}

}  // namespace foretoken
