// A training framework as data: which attention it runs, what it hides behind what, what its host costs.
// data/training/README.md describes the file; a user adds a stack without code.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/estimate.h"
#include "compose/stack.h"
#include "compose/training_lowering.h"
#include "hardware/device.h"
#include "model/part_memory.h"
#include "training/training_constants.h"
#include "training/training_plan.h"

namespace foretoken {

class Library;

// Published runs that a stack stands for: rows of a source, of some of its software releases, tasks, models, devices or
// number formats, as the source names them (empty = all).
struct StackRuns {
  std::string source, task;
  std::vector<std::string> releases, models, gpus, dtypes;
};

// 90% of runs are within these factors of the prediction. The errors of kernels and collectives alone were within the
// others in 90% of them: that much is among the errors of the runs.
struct RunInterval {
  double low = 0.8, high = 1.25;
  double kernels_low = 1, kernels_high = 1;
  bool is_assumed = true;  // too few runs of such jobs were published to tell
};

// What the runs cover that a stack was fitted to, or else compared with.
struct StackCoverage {
  std::vector<std::string> devices;      // by name; none = all of the generations
  std::vector<std::string> generations;  // of those
  bool experts = false, adapters = false;
  int64_t most_devices = 0;
  int64_t longest_sequence = 0;  // tokens; 0 = not recorded
};
// What a stack is asked about, besides the model.
struct StackUse {
  const Device* device = nullptr;
  bool adapters = false;
  bool tuning = false;  // adapters, or packed examples
  int64_t devices = 1;
  int64_t sequence_length = 1;
  int64_t expert_ranks = 1;
};

// What a stack does differently in a number format.
struct RecipeHabits {
  bool hides_tensor = true;                        // tensor-parallel traffic travels beside multiplies
  std::optional<double> gathered_parameter_bytes;  // of sharded parameters on their way; nothing = 16 bits
};

struct TrainingStack {
  std::string name, summary, source;
  StackOrigin origin;
  AttentionKernel attention = AttentionKernel::flash;
  // Attention with learned sinks runs unfused on these devices or generations; "all" = everywhere.
  std::vector<std::string> unfused_sinks;
  std::vector<std::string> schedules = {"1f1b", "interleaved"};  // of pipelines, that it can run
  // What it can share out among replicas and compute again, for searches.
  std::vector<Sharding> shardings = {Sharding::none, Sharding::optimizer, Sharding::parameters};
  std::vector<Recompute> recomputes = {Recompute::none, Recompute::selective, Recompute::full};
  bool recomputes_some_layers = true;  // not only all or none
  bool takes_megatron_flags = true;    // its plans can be written as arguments of Megatron-LM
  bool scatters_sends = true;          // each tensor rank sends its part to the next stage, not the whole
  bool gathers_always = false;         // sharded gradients too: parameters are gathered for each micro-batch (FSDP)
  bool scatters_always = false;        // sharded gradients are reduced for each micro-batch (DeepSpeed's ZeRO-2)
  // With several stages, sharded parameters are gathered once a step and stay, and gradients are reduced once, at its
  // end (torchtitan's default: no resharding after the forward pass in pipelines).
  bool keeps_gathered_in_pipelines = false;
  Sharding usual_sharding = Sharding::none;  // what replicas share out unless someone says otherwise
  bool offloads_gradients = false;  // with an optimizer in host memory, sharded gradients go there as they are made
  double held_gradient_bytes = 0;   // in memory, for each parameter; 0 = as they travel
  double held_logit_bytes = 4;      // in memory at the loss, for each logit: one fp32 copy where the loss is fused
  double master_weight_bytes = 4;   // of an optimizer that has a copy of the weights
  std::map<std::string, RecipeHabits, std::less<>> recipes;  // by the name of the number format
  LayerModules usual_recompute;  // what its published recipes compute again, where a model has it
  // The kernels that it runs one by one for each operator (data/stacks), with what launching them costs; nothing = one
  // for each operator, as software that fuses them.
  std::optional<Stack> kernels;
  std::optional<Stack>
      autocast_kernels;  // the same where weights in fp32 are cast for each multiply; nothing = no other
  std::optional<Stack> adapter_kernels;  // the same with adapters in fp32 beside frozen weights in 16 bits
  bool stops_recompute_early = false;    // a layer is computed again up to the input of its last trained multiply
  double host_factor = 1;                // times what launching those costs
  // Bytes of each element that stay for the backward pass beyond those of fused kernels.
  SavedBeside saved_beside;
  bool frees_gradients = false;  // between steps: they take memory as activations leave it
  TrainingConstants constants = usual_training_constants();
  // Where they differ on a generation of devices (sm_90), on some of it (sm_103) or on one device; the narrower counts.
  std::map<std::string, std::map<TrainingConstant, double>, std::less<>> on;
  std::vector<std::string> fitted;  // "linear_factor", "on.sm_90.attention_factor": fitted to published runs
  std::vector<StackRuns> runs;
  std::optional<StackCoverage> coverage;
  RunInterval interval;                         // of models without routed experts
  std::optional<RunInterval> experts_interval;  // and with some; nothing = the same
  std::optional<RunInterval> tuning_interval;   // of fine-tuning without them; nothing = the same

  TrainingConstants constants_on(const Device& device) const;
  AttentionKernel attention_of(const Layer& layer, const Device& device) const;
  RecipeHabits habits_of(std::string_view recipe) const;
  // Wider than that of its runs where the use is beyond them. An interval that was assumed, not fitted, is never wider
  // than it would be if the stack had been compared with nothing.
  RunInterval interval_for(const Model& model, const StackUse& use) const;
  // In which ways: "no published run on NVIDIA L40S". Empty = in none.
  std::vector<std::string> beyond_runs(const Model& model, const StackUse& use) const;
  // Of its constants: fitted to runs, or not.
  Confidence confidence() const { return runs.empty() ? Confidence::extrapolated : Confidence::interpolated; }
  Confidence confidence_for(const Model& model, const StackUse& use) const {
    return beyond_runs(model, use).empty() ? confidence() : Confidence::extrapolated;
  }
};

// What a name of TrainingStack::fitted says; nothing for one that is none.
struct FittedConstant {
  std::string place;  // empty = everywhere
  TrainingConstant constant = linear_factor;
};
std::optional<FittedConstant> fitted_constant(std::string_view name);

// InputError with file, path, value, expectation.
using TrainingStackFinder = std::function<TrainingStack(const std::string& name)>;
// `find` gives the stack that the file extends: it has all that the file does not say, runs and fitted names apart.
// `find_kernels` gives the stack of kernels that it names.
TrainingStack parse_training_stack(std::string_view text, const std::string& source,
                                   const TrainingStackFinder& find = {}, const StackFinder& find_kernels = {});

// Stacks that ship, by name; a name with a slash or .json is a file.
class TrainingStackCatalogue {
 public:
  explicit TrainingStackCatalogue(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::vector<std::string> names() const;
  TrainingStack stack(const std::string& name) const;  // InputError with the nearest name
  std::vector<TrainingStack> all() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};
TrainingStackCatalogue training_stacks_of(const Library& library);

// The stack on a host whose times are `factor` times as long: 2 = a host half as fast.
TrainingStack on_host(TrainingStack stack, double factor);
// Keys that files of these have and those of serving software (compose/stack.h) do not.
std::vector<std::string> training_stack_keys();
// A name of the catalogue, or a file with one of those keys.
bool is_training_stack(const TrainingStackCatalogue& catalogue, const std::string& name);

}  // namespace foretoken
