#include "training/estimate/training_spec.h"

#include <fmt/format.h>

#include "base/error.h"
#include "library/library.h"
#include "training/training_machine.h"

namespace foretoken {

Cluster open_cluster(const HardwareCatalogue& hardware, const TrainingSpec& spec) {
  Cluster cluster = hardware.cluster(spec.cluster);
  const int64_t per_node = devices_per_node(cluster);
  if (spec.nodes > 0) {
    cluster = cluster_with_nodes(std::move(cluster), static_cast<int>(spec.nodes));
  } else if (spec.devices > 0) {
    cluster = cluster_with_nodes(std::move(cluster), static_cast<int>((spec.devices + per_node - 1) / per_node));
  }
  if (spec.devices > total_devices(cluster)) {
    throw InputError(
        {.field = "devices",
         .value = fmt::format("{}", spec.devices),
         .expected = fmt::format("at most the {} of {} nodes", total_devices(cluster), cluster.node_count)});
  }
  return cluster;
}

TrainingQuestion training_question(const TrainingSpec& spec, Cluster cluster, TrainingStack stack) {
  TrainingQuestion question;
  question.job = spec.job;
  question.plan = spec.plan;
  question.cluster = std::move(cluster);
  question.devices = spec.devices > 0 ? spec.devices : total_devices(question.cluster);
  question.stack = std::move(stack);
  question.formats = usual_formats(spec.job.recipe, spec.job.lora, question.stack.attention);
  question.formats.gradient_bytes = question.stack.constants[gradient_bytes];
  question.formats.optimizer = spec.optimizer;
  question.formats.offloaded_optimizer = spec.offloaded_optimizer;
  question.formats.offloaded_activations = spec.offloaded_activations;
  question.job.optimizer_state_bytes = spec.optimizer.bytes();
  const std::string usual = spec.job.lora.rank > 0 ? "lora-2x-causal-half" : "model-3x-causal-half";
  question.convention = &flop_convention_named(spec.flops.empty() ? usual : spec.flops);
  question.run = spec.run;
  return question;
}

TrainingQuestion open_training(const Library& library, const TrainingSpec& spec) {
  return training_question(spec, open_cluster(library.hardware(), spec),
                           training_stacks_of(library).stack(spec.stack.empty() ? usual_training_stack : spec.stack));
}

TrainingPrediction estimate_training(const Library& library, const TrainingSpec& spec) {
  TrainingPrediction prediction{.question = open_training(library, spec), .estimate = {}};
  const std::unique_ptr<MachineModels> machine = machine_of(library, prediction.question.cluster, spec.tier);
  prediction.estimate = estimate_training(prediction.question, *machine);
  prediction.kernels = *machine->machine().kernels;
  return prediction;
}

}  // namespace foretoken
