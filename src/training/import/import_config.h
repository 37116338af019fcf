// Configuration files of training frameworks -> what they say of the model, the plan and the step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "training/import/said_settings.h"
#include "training/training_plan.h"

namespace foretoken {

// A key that no rule reads.
struct IgnoredKey {
  std::string key;
  int line = 0;
  std::string nearest;  // a key that is read and looks like it; "" = none
};

struct ImportedTraining {
  std::string format;          // a name of config_formats()
  SaidSettings said;           // what the file says, and its framework's defaults for the model
  std::optional<Model> model;  // where all its sizes are said
  std::vector<IgnoredKey> ignored;
  std::vector<std::string> without_effect;  // keys that change neither time nor memory
  std::vector<std::string> not_modeled;     // keys that may, and are not read
  bool leaves_recompute_open = false;       // to the model's code
  std::map<std::string, std::string> keys;  // of the file, by the field of the question that they set: seq_length
  std::vector<std::string> notes;           // a value that is chosen at run time, a size that is missing

  std::optional<int64_t> devices() const;  // nodes x devices of each
};

// The format is recognised by its keys. InputError, with file, line and key, for what cannot be read or cannot be.
ImportedTraining import_training_config(const std::filesystem::path& file);
ImportedTraining parse_training_config(std::string_view text, const std::string& source);

// The plan with what the file says in place of what it has. `devices` take the place of those that the file says; 0 =
// the file's. Replicas, and a global batch that follows from accumulation, are worked out from them.
TrainingPlan plan_with(TrainingPlan plan, const ImportedTraining& imported, int64_t devices);

// InputError where a file says global batch, micro-batch and accumulation, and they do not go together on so many
// replicas, as DeepSpeed does.
void check_batch_sizes(const ImportedTraining& imported, int64_t replicas);

}  // namespace foretoken
