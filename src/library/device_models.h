// What predicts the parts of a step on one device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/kernel.h"
#include "kernel/power.h"
#include "model/step.h"
#include "network/rank_network.h"

namespace foretoken {

struct DeviceModels {
  KernelPredictor kernels;
  std::shared_ptr<const RankNetwork> collectives;  // null = start-up and wire time from the sheet
  std::optional<PowerModel> power = std::nullopt;  // nothing = not known what it draws
};

// The plan tells which are needed: a single rank has no collectives.
using DeviceModelMaker = std::function<DeviceModels(const Device&, const ParallelPlan&, const PlacementSpec&)>;

// What models differ in, for those who keep them: in the plan alone, and in all that a maker is given.
std::string plan_key(const ParallelPlan& plan);
std::string device_models_key(std::string_view device, const ParallelPlan& plan, const PlacementSpec& placement);

}  // namespace foretoken
