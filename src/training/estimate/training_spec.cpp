#include "training/estimate/training_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "hardware/usual_cluster.h"
#include "library/library.h"
#include "network/given_links.h"
#include "training/training_machine.h"

namespace foretoken {

namespace {

bool is_known(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& one) { return comparable_name(one) == comparable_name(name); });
}

// A box of one device's kind: the node that ships with it, or cards on PCIe where none does.
Node box_of(const HardwareCatalogue& hardware, const Device& device, int64_t devices) {
  if (std::optional<Node> node = hardware.node_with(device)) {
    if (devices > 0 && devices < node->device_count) node->device_count = static_cast<int>(devices);
    return *node;
  }
  const BytesPerSecond link = device.host_bandwidth ? device.host_bandwidth->value : HostMemoryLink{}.link;
  return {.name = device.name,
          .title = device.title,
          .device = device,
          .device_count = static_cast<int>(std::max<int64_t>(1, devices)),
          .fabric = {.kind = NodeFabricKind::pcie,
                     .bandwidth = {.value = link, .source = "the device's link to its host", .assumed = true}}};
}

// Several nodes without a cluster of their own are in the one that serving assumes too.
Cluster cluster_of_nodes(const HardwareCatalogue& hardware, const Node& node, int64_t nodes) {
  if (nodes > 1) return cluster_with_nodes(usual_cluster(hardware, node), static_cast<int>(nodes));
  return {.name = node.name, .title = node.title, .node = node, .node_count = 1};
}

// Files of clusters name a node, files of devices do not.
bool is_device(const HardwareCatalogue& hardware, const std::string& name) {
  if (!HardwareCatalogue::is_path(name)) return is_known(hardware.device_names(), name);
  const Json document = read_json_file(name);
  return !JsonView(document, name).has("node");
}

// Of a spec that names a device or a node; nothing = it names a cluster.
std::optional<Node> named_node(const HardwareCatalogue& hardware, const TrainingSpec& spec) {
  const std::string& name = spec.cluster;
  if (is_known(hardware.cluster_names(), name)) return std::nullopt;
  if (is_device(hardware, name)) return box_of(hardware, hardware.device(name), spec.devices);
  if (is_known(hardware.node_names(), name)) return hardware.node(name);
  return std::nullopt;
}

Cluster named_cluster(const HardwareCatalogue& hardware, const TrainingSpec& spec) {
  const std::optional<Node> node = named_node(hardware, spec);
  if (!node) return hardware.cluster(spec.cluster);
  const int64_t needed = (spec.devices + node->device_count - 1) / node->device_count;
  return cluster_of_nodes(hardware, *node, std::max<int64_t>(1, spec.nodes > 0 ? spec.nodes : needed));
}

// Racks of 72 are used in powers of two: 64 of each where several are needed and the job does not fill them.
void use_powers_of_two(Cluster& cluster, int64_t devices) {
  const int64_t per_node = devices_per_node(cluster);
  const bool is_power = (per_node & (per_node - 1)) == 0;
  if (is_power || devices <= per_node || devices % per_node == 0) return;
  int64_t used = 1;
  while (2 * used <= per_node && devices % (2 * used) == 0) used *= 2;
  if (2 * used > per_node) cluster.node.device_count = static_cast<int>(used);
}

// Devices and nodes that were both asked for: as many on each node.
void share_out_devices(Cluster& cluster, const TrainingSpec& spec) {
  if (spec.nodes == 0 || spec.devices == 0 || spec.devices >= total_devices(cluster)) return;
  if (spec.devices % spec.nodes != 0) {
    throw InputError(
        {.field = "devices",
         .value = fmt::format("{}", spec.devices),
         .expected = fmt::format("a multiple of the {} nodes, because each has as many GPUs", spec.nodes)});
  }
  Node& node = cluster.node;
  const int64_t used = spec.devices / spec.nodes;
  if (node.network_cards) {  // each device has its share of them
    int& cards = node.network_cards->count.value;
    cards = static_cast<int>(std::max<int64_t>(1, cards * used / node.device_count));
  }
  node.device_count = static_cast<int>(used);
}

}  // namespace

Cluster open_cluster(const HardwareCatalogue& hardware, const TrainingSpec& spec) {
  Cluster cluster = named_cluster(hardware, spec);
  if (spec.nodes == 0) use_powers_of_two(cluster, spec.devices);
  const int64_t per_node = devices_per_node(cluster);
  if (spec.nodes > 0) {
    cluster = cluster_with_nodes(std::move(cluster), static_cast<int>(spec.nodes));
  } else if (spec.devices > 0) {
    cluster = cluster_with_nodes(std::move(cluster), static_cast<int>((spec.devices + per_node - 1) / per_node));
  }
  share_out_devices(cluster, spec);
  if (spec.devices > total_devices(cluster)) {
    throw InputError({.field = "devices",
                      .value = fmt::format("{}", spec.devices),
                      .expected = fmt::format("at most {}, the GPUs of {}", total_devices(cluster),
                                              counted(cluster.node_count, "node"))});
  }
  set_links(cluster, spec.link);
  return cluster;
}

std::string assumed_cluster_note(const HardwareCatalogue& hardware, const TrainingSpec& spec, const Cluster& cluster) {
  if (cluster.node_count == 1) return "";
  if (!named_node(hardware, spec)) return "";
  return assumed_cluster_text(cluster, spec.devices > 0 ? spec.devices : total_devices(cluster));
}

TrainingQuestion training_question(const TrainingSpec& spec, Cluster cluster, TrainingStack stack) {
  TrainingQuestion question;
  question.job = spec.job;
  question.job.model.dtype = spec.job.recipe.dtype;  // of activations, whatever the checkpoint is in
  question.plan = spec.plan;
  question.cluster = std::move(cluster);
  question.devices = spec.devices > 0 ? spec.devices : total_devices(question.cluster);
  question.stack = std::move(stack);
  question.formats = usual_formats(spec.job.recipe, spec.job.lora, question.stack.attention, spec.job.dropout);
  question.formats.gradient_bytes = question.stack.held_gradient_bytes > 0 ? question.stack.held_gradient_bytes
                                                                           : question.stack.constants[gradient_bytes];
  if (spec.job.gradient_bytes > 0) question.formats.gradient_bytes = spec.job.gradient_bytes;
  question.job.updates_weights = spec.optimizer.master_bytes == 0;
  if (question.job.updates_weights) question.formats.gradient_bytes = std::min(2.0, question.formats.gradient_bytes);
  question.formats.saved.beside = question.stack.saved_beside;
  // The residual stream of weights in fp32 is in fp32 where autocast makes the multiplies' inputs.
  SavedBeside& beside = question.formats.saved.beside;
  if (question.job.updates_weights) beside.stream = beside.adapter = 0;
  question.formats.frees_gradients = question.stack.frees_gradients;
  question.formats.logit_bytes = spec.logit_bytes.value_or(question.stack.held_logit_bytes);
  question.formats.optimizer = spec.optimizer;
  question.formats.optimizer.master_bytes = std::min(spec.optimizer.master_bytes, question.stack.master_weight_bytes);
  question.formats.offloaded_optimizer = spec.offloaded_optimizer;
  question.formats.offloads_gradients = question.stack.offloads_gradients;
  question.formats.offloaded_activations = spec.offloaded_activations;
  question.formats.offloaded_parameters = spec.offloaded_parameters;
  question.formats.keeps_gathered_in_pipelines = question.stack.keeps_gathered_in_pipelines;
  question.overheads.usable = spec.usable_memory;
  if (!spec.base_weights.empty()) {
    question.formats.frozen_weight_bytes = base_weight_bytes(spec.base_weights).value();
    question.job.frozen_weight_bytes = question.formats.frozen_weight_bytes;
  }
  question.job.optimizer_state_bytes = spec.optimizer.bytes();
  question.job.orthogonal_steps = spec.optimizer.orthogonal_steps;
  const std::string usual = spec.job.lora.rank > 0 ? "lora-2x-causal-half" : "model-3x-causal-half";
  question.convention = &flop_convention_named(spec.flops.empty() ? usual : spec.flops);
  question.run = spec.run;
  return question;
}

TrainingQuestion open_training(const Library& library, const TrainingSpec& spec) {
  return training_question(
      spec, open_cluster(library.hardware(), spec),
      on_host(training_stacks_of(library).stack(spec.stack.empty() ? usual_training_stack : spec.stack),
              spec.host_factor));
}

TrainingPrediction estimate_training(const Library& library, const TrainingSpec& spec) {
  TrainingPrediction prediction{.question = open_training(library, spec), .estimate = {}};
  const std::unique_ptr<MachineModels> machine = machine_of(library, prediction.question.cluster, spec.tier);
  prediction.estimate = estimate_training(prediction.question, *machine);
  prediction.kernels = *machine->machine().kernels;
  return prediction;
}

}  // namespace foretoken
