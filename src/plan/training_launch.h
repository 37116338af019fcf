// A training plan as the file or the command that starts it in a framework. What `train` reads of that framework it
// reads back from here. The kinds are in training_launchers/, their list in training_launchers/list.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan_space.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

// What a framework's settings can keep in host memory.
struct HostMemoryUse {
  bool optimizer = false;               // its state alone
  bool parts_of_optimizer = false;      // or a share of it
  bool parameters = false;              // the weights alone
  bool weights_with_optimizer = false;  // both together, and not one of them
  bool activations = false;             // all of them
};

struct TrainingLauncher {
  std::string_view name;     // what users type
  std::string_view summary;  // the file it writes
  // Why the framework cannot run the plan; empty = it can.
  std::string (*refusal)(const TrainingQuestion& question);
  std::string (*write)(const TrainingQuestion& question);
  // What the framework can shard and recompute: a search for it tries nothing else.
  std::vector<Sharding> shardings = {};
  std::vector<Recompute> recomputes = {};
  // The same, where it depends on the job.
  std::vector<Sharding> (*shardings_of)(const TrainingQuestion& question) = nullptr;
  bool has_pipelines = true;
  bool recomputes_some_layers = true;  // not only all or none
  bool has_experts = true;             // ranks that divide experts
  bool has_model_ranks = true;         // tensor and context parallelism
  // Whether tensor-parallel ranks can divide the job's weights; nothing = those of every job.
  bool (*splits_tensors)(const TrainingQuestion& question) = nullptr;
  HostMemoryUse host_memory = {};
  // Parts of the plan that the file has no settings for, which the user's own script must turn on; nothing = the file
  // has all of it.
  std::vector<std::string> (*left_to_script)(const TrainingQuestion& question) = nullptr;
  // What the file asks for where nobody says, for all weights and for adapters in bf16; empty = Adam in fp32.
  std::string_view optimizer = {}, adapter_optimizer = {};
  std::string_view stack = {};  // whose times are those of the framework; empty = the usual one
  // At the loss that the file names, with its own stack; nothing = as the stack has it.
  std::optional<double> logit_bytes = {};
  // What the file asks for where nobody says and there are experts.
  TokenDispatcher dispatcher = TokenDispatcher::usual;
};

std::span<const TrainingLauncher> training_launchers();
std::vector<std::string> training_launcher_names();
const TrainingLauncher* find_training_launcher(std::string_view name);

// Frozen ones, below adapters.
bool has_four_bit_weights(const TrainingQuestion& question);

// The choices without those that the framework cannot run; what users fixed stays.
PlanChoices choices_of(const TrainingLauncher& launcher, PlanChoices choices, const TrainingQuestion& question);

}  // namespace foretoken
