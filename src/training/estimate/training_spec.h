// A training run, asked in names: what is opened from the library, and what comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hardware/catalogue.h"
#include "kernel/kernel.h"
#include "network/rank_places.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

class Library;

struct TrainingSpec {
  TrainingJob job;
  std::string cluster;     // of the library, a node (alone), or a device (as many as `devices` in one box)
  int64_t nodes = 0;       // 0 = as many as `devices` need, or the cluster's own
  int64_t devices = 0;     // that train; 0 = all of the nodes
  LinkSpec link = {};      // what is known of the links of its nodes
  std::string stack = {};  // training software; empty = usual_training_stack
  double host_factor = 1;  // times the stack's host times: 2 = a host half as fast
  TrainingPlan plan = {};
  OptimizerState optimizer = {};
  double offloaded_optimizer = 0, offloaded_activations = 0, offloaded_parameters = 0;  // shares in host memory
  std::string base_weights = {};           // format of a frozen base under adapters; empty = as it is multiplied
  std::optional<double> logit_bytes = {};  // in memory at the loss; nothing = the stack's
  double usable_memory = MemoryOverheads{}.usable;
  std::string flops = {};  // how model FLOPs are counted for MFU; empty = the usual way
  std::optional<LongRun> run = {};
  Tier tier = Tier::best;
};

inline constexpr const char* usual_training_stack = "megatron-bridge-26.08";

// With as many nodes as the spec asks for, or as its devices need.
Cluster open_cluster(const HardwareCatalogue& hardware, const TrainingSpec& spec);
// What the cluster of open_cluster assumes of the network between its nodes, with `{cluster}` for the name of that
// field; empty = it is known.
std::string assumed_cluster_note(const HardwareCatalogue& hardware, const TrainingSpec& spec, const Cluster& cluster);
// On that cluster, by that software. InputError names what is unknown.
TrainingQuestion training_question(const TrainingSpec& spec, Cluster cluster, TrainingStack stack);
// With every name looked up. InputError names what is unknown or does not go together.
TrainingQuestion open_training(const Library& library, const TrainingSpec& spec);

struct TrainingPrediction {
  TrainingQuestion question;
  TrainingEstimate estimate;
  std::optional<KernelPredictor> kernels = std::nullopt;  // that priced it
};
TrainingPrediction estimate_training(const Library& library, const TrainingSpec& spec);

}  // namespace foretoken
