// One server of a launch line: what its flags say, as fields of a question (`foretoken schema serve`).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "compose/serving_engine.h"
#include "serving/engine/launch_words.h"

namespace foretoken {

// What became of the flags that are no fields, each as it was written.
struct LaunchRemarks {
  std::vector<std::string> without_effect;  // on speed and memory
  std::vector<std::string> not_simulated;   // they change speed, but nothing here follows them
  std::vector<std::string> unknown;
  std::vector<std::string> notes;  // whole sentences on what was taken for something else
  std::string checkpoint_format;   // a flag and its format that the checkpoint must already have; empty = none
};

// The content of a file that a flag names; nothing where it cannot be read.
using ReadLaunchFile = std::function<std::optional<std::string>(const std::string& path)>;
// Number of experts in a layer of the model: 0 = a dense model, or one that nobody knows. `model`: as the line names
// it, empty where it does not.
using ExpertsOfModel = std::function<std::optional<int64_t>(const std::string& model)>;

// What a reader of launch lines may ask about.
struct LaunchLookups {
  ReadLaunchFile read_file = {};   // empty = no file can be read
  ExpertsOfModel experts_of = {};  // empty = nothing is known about models
};

struct LaunchedServer {
  LaunchStyle style = LaunchStyle::vllm;
  Json fields = Json::object();
  std::string role;  // "prefill", "decode"; empty = whole requests
  int64_t replicas = 1;
};

// InputError for values that contradict each other.
LaunchedServer read_server(const LaunchWords& words, const std::string& source, const LaunchLookups& lookups,
                           LaunchRemarks& remarks);

}  // namespace foretoken
