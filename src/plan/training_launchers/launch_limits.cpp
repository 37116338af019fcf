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

std::string without_low_precision(const TrainingQuestion& question, std::string_view framework) {
  const std::string_view name = question.job.recipe.name;
  if (name == "bf16" || name == "fp16") return "";
  return fmt::format("{} does not train in {}", framework, name);
}

std::string first_reason(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

InputError no_format_like(std::string_view recipe, std::string_view framework) {
  return InputError({.field = "precision",
                     .value = std::string(recipe),
                     .expected = fmt::format("a format that {} has a setting for", framework)});
}

}  // namespace foretoken
