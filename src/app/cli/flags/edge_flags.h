// Which CPU or phone, and what its runtime joins.
#pragma once

#include <string>

#include "app/cli/grammar/options.h"
#include "compose/edge/fusion_rules.h"
#include "kernel/edge/edge_predictor.h"
#include "library/library.h"

namespace foretoken {

class EdgeFlags {
 public:
  void declare(Options& options);
  EdgePredictor predictor(const Library& library) const;
  // Those asked for; default: those of the device's runtime. InputError where none ship for it.
  FusionRules fusion_rules(const Library& library) const;
  const std::string& device() const { return device_; }
  // It is a device of the hardware library (foretoken devices) and not a predictor.
  bool is_hardware(const Library& library) const;

 private:
  std::string device_ = "neoverse_v1_ort", fusion_;
};

}  // namespace foretoken
