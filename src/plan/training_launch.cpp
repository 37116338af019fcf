#include "plan/training_launch.h"

#include <utility>

namespace foretoken {

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

bool has_four_bit_weights(const TrainingQuestion& question) {
  return question.job.lora.rank > 0 && question.formats.frozen_weight_bytes < 1;
}

PlanChoices choices_of(const TrainingLauncher& launcher, PlanChoices choices, const TrainingQuestion& question) {
  const std::vector<Sharding> shardings =
      launcher.shardings_of != nullptr ? launcher.shardings_of(question) : launcher.shardings;
  if (!shardings.empty() && choices.shardings.size() != 1) choices.shardings = shardings;
  if (!launcher.recomputes.empty() && choices.recomputes.size() != 1) choices.recomputes = launcher.recomputes;
  if (!launcher.has_pipelines && !choices.pipeline) choices.pipeline = 1;
  if (!launcher.has_experts && !choices.expert) choices.expert = 1;
  const bool splits_tensors =
      launcher.has_model_ranks && (launcher.splits_tensors == nullptr || launcher.splits_tensors(question));
  if (!splits_tensors && !choices.tensor) choices.tensor = 1;
  if (!launcher.has_model_ranks && !choices.context) choices.context = 1;
  if (!launcher.recomputes_some_layers) choices.parts_of_layers = 1;
  return choices;
}

}  // namespace foretoken
