#include "app/cli/flags/edge_flags.h"

#include <algorithm>

#include "app/cli/grammar/shipped_file.h"
#include "base/error.h"
#include "base/file.h"
#include "kernel/edge/edge_predictor_file.h"

namespace foretoken {
namespace {

// Shipped sweeps stand for other hosts with the same core. Two sweeps of one core, through two bindings of its runtime,
// predict times of 30 networks that differ by up to 11%, nine of ten by less than this (docs/accuracy). No time of a
// whole network had a part in it.
constexpr double shipped_host_spread = 0.085;

bool is_predictor_file(const std::string& device) {
  return device.find('/') != std::string::npos || device.ends_with(".json");
}

}  // namespace

void EdgeFlags::declare(Options& options) {
  options.text("--device", device_,
               "CPU or GPU: a built-in CPU predictor, a file written by `foretoken profile cpu` or `foretoken fit "
               "edge-kernels`, or a GPU listed by `foretoken devices`");
  options.text("--fusion", fusion_,
               "Fusion rules of the runtime: a built-in name (onnxruntime, xnnpack) or a rules file [those of the "
               "device's runtime]");
}

bool EdgeFlags::is_hardware(const Library& library) const {
  const std::vector<std::string> predictors = file_stems(library.directory() / "edge" / "devices");
  if (is_predictor_file(device_) || std::find(predictors.begin(), predictors.end(), device_) != predictors.end())
    return false;
  try {
    library.hardware().device(device_);  // by any of its names
    return true;
  } catch (const InputError&) {
    return false;
  }
}

EdgePredictor EdgeFlags::predictor(const Library& library) const {
  EdgePredictor own = read_edge_predictor(
      shipped_file("--device", library.directory() / "edge" / "devices", device_,
                   "a CPU predictor (see `foretoken profile cpu`) or a GPU (`foretoken devices` lists them)"));
  if (!is_predictor_file(device_)) own.host_spread = shipped_host_spread;
  return own;
}

FusionRules EdgeFlags::fusion_rules(const Library& library) const {
  const std::filesystem::path folder = library.directory() / "edge" / "fusion";
  if (!fusion_.empty()) return read_fusion_rules(shipped_file("--fusion", folder, fusion_, "a file of fusion rules"));
  const std::string runtime = predictor(library).runtime;
  for (const std::string& name : file_stems(folder)) {
    FusionRules rules = read_fusion_rules(folder / (name + ".json"));
    if (rules.runtime == runtime) return rules;
  }
  throw InputError({.source = "--fusion",
                    .value = "not given",
                    .expected = "a rules file for the runtime " + runtime + ", because none is built in"});
}

}  // namespace foretoken
