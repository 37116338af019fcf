// The flags of feed-forward layers on devices of their own.
#pragma once

#include <string>

#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "serving/steps/attention_ffn_steps.h"

namespace foretoken {

struct FfnFlags {
  std::string pool;  // "device=h20,count=8"; empty = they stay beside attention

  void declare(Options& options);
  bool given() const { return !pool.empty(); }
  // Beside one group of attention devices with this plan, placed so. InputError where the layers do not fit, or the way
  // between the devices is neither given nor known.
  FfnPool read(const Model& model, const Device& attention_device, const ParallelPlan& attention_plan,
               const PlacementSpec& placement, Tier tier, const Library& library) const;
};

}  // namespace foretoken
