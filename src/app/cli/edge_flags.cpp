#include "app/cli/edge_flags.h"

#include "app/cli/shipped_file.h"
#include "base/error.h"
#include "base/file.h"
#include "kernel/edge/edge_predictor_file.h"

namespace foretoken {

void EdgeFlags::declare(Options& options) {
  options.text("--device", device_,
               "Predictor of a device: a name of the library, or a file of profile cpu or fit edge-kernels");
  options.text("--fusion", fusion_,
               "What the runtime joins: a name of the library (onnxruntime, xnnpack) or a rules file; default: as the "
               "device's runtime does");
}

EdgePredictor EdgeFlags::predictor(const Library& library) const {
  return read_edge_predictor(
      shipped_file("--device", library.directory() / "edge" / "devices", device_, "edge predictor"));
}

FusionRules EdgeFlags::fusion_rules(const Library& library) const {
  const std::filesystem::path folder = library.directory() / "edge" / "fusion";
  if (!fusion_.empty()) return read_fusion_rules(shipped_file("--fusion", folder, fusion_, "a file of fusion rules"));
  const std::string runtime = predictor(library).runtime;
  for (const std::string& name : json_stems(folder)) {
    FusionRules rules = read_fusion_rules(folder / (name + ".json"));
    if (rules.runtime == runtime) return rules;
  }
  throw InputError({.source = "--fusion",
                    .value = "not given",
                    .expected = "rules for the runtime " + runtime + ", for which none ship"});
}

}  // namespace foretoken
