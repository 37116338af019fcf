// The flags that say what is trained, on which machine, by which software and for how long. How it is laid out:
// training_plan_flags.h.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/cli/flags/link_flags.h"
#include "app/cli/flags/training_plan_flags.h"
#include "app/cli/grammar/command.h"
#include "app/cli/grammar/options.h"
#include "base/error.h"
#include "library/library.h"
#include "training/estimate/training_spec.h"

namespace foretoken {

// What the flags ask, on top of a configuration file where one is given.
struct TrainingRequest {
  TrainingQuestion question;
  PlanChoices choices;  // of a search: what of the plan is fixed
  // What a reader should know: settings of the file that were not used, devices that are only like others.
  std::vector<std::string> notes;
  // What a file calls fields of the question that no flag overrides: "parallelism.tensor_parallel_degree of x.toml".
  std::map<std::string, std::string, std::less<>> file_names;
};

// The error with the file's own keys in place of flags that nobody gave.
InputError named_as_in_file(const InputError& error, const TrainingRequest& request);

// Devices of one kind, of a job on several kinds.
struct PoolMachine {
  std::string name;  // of a cluster, node or device
  int64_t devices = 0;
  int64_t of_job = 0;  // of all pools together
};

// What a command knows beyond the flags.
struct RequestContext {
  std::optional<PoolMachine> pool;                     // instead of the machine that the flags name
  std::string stack;                                   // where neither flags nor file name one; empty = the usual one
  std::string optimizer = {}, adapter_optimizer = {};  // of all weights and of adapters in bf16, likewise
  std::optional<double> logit_bytes = {};              // at the loss, where no file says; nothing = the stack's
  bool has_own_lengths = false;                        // of sequences: what flags and file say of them is not used
};

struct TrainingFlags {
  enum class Use { one_plan, search };

  void declare(Options& options);
  // InputError for what cannot be, and for flags that would change nothing.
  TrainingRequest request(const Library& library, Use use, const RequestContext& context = {}) const;

 private:
  void declare_memory(Options& options);
  void declare_run(Options& options);
  bool given(const char* flag) const { return options_->was_given(flag); }
  std::optional<ImportedTraining> imported_config() const;
  std::string config_name() const;
  void settle_length(TrainingJob& job, const ImportedTraining* imported, std::vector<std::string>& notes) const;
  void add_assumptions(const ImportedTraining& imported, bool has_own_lengths, std::vector<std::string>& notes) const;
  Model named_model(const Library& library, const std::string& name) const;
  TrainingJob job(const Library& library, const ImportedTraining* imported) const;
  // Empty = the usual one.
  std::string stack(const ImportedTraining* imported) const;
  void set_offloads(TrainingSpec& spec, const ImportedTraining* imported) const;
  // InputErrors about the machine name the flag that it was given by.
  TrainingQuestion opened(const Library& library, const TrainingSpec& spec, bool is_pool) const;
  std::optional<LongRun> long_run(const Library& library, const Cluster& cluster) const;

  const Options* options_ = nullptr;
  TrainingPlanFlags plan_;
  LinkFlags link_;
  double host_factor_ = 1;
  std::string model_, config_, cluster_, device_, stack_, precision_ = "bf16", convention_ = "model-3x-causal-half";
  int64_t nodes_ = 0, devices_ = 0, sequence_length_ = 4096, lora_rank_ = 0;
  std::string lora_target_ = "all", routing_ = "balanced";
  double expert_capacity_ = 0;
  int64_t packed_length_ = 0;
  double hidden_dropout_ = 0, attention_dropout_ = 0;
  double clip_grad_ = 1;

  std::string optimizer_ = "adam";
  bool offload_optimizer_ = false;
  double optimizer_fraction_ = 1, activation_fraction_ = 0, usable_memory_ = MemoryOverheads{}.usable;
  bool offload_parameters_ = false;
  std::string base_weights_ = "bf16";

  std::string tokens_;
  double usd_per_hour_ = -1, watts_ = 0, mtbf_hours_ = 0, checkpoint_interval_ = 0, storage_gb_per_s_ = 2;
  int64_t spares_ = 0;
  std::string checkpoint_mode_ = "asynchronous";
};

// Those of the question, and what must be known of the devices whose kernels were priced.
void add_notes(Answer& answer, const std::vector<std::string>& notes, const KernelPredictor& kernels);
void add_notes(Answer& answer, const std::vector<std::string>& notes, std::span<const KernelPredictor* const> kernels);

}  // namespace foretoken
