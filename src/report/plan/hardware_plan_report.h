// What a step's time hangs on: numbers of a device's sheet, and what becomes of it when they are others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "compose/step_estimate.h"
#include "plan/hardware/sensitivity.h"
#include "report/parts/device_notes.h"

namespace foretoken {

struct HardwarePlanReport {
  std::string model;
  Device device;
  StepEstimate step;  // on the device as it is
  std::vector<Sensitivity> sensitivities;
  std::vector<DeviceChange> changes;     // asked for
  std::optional<Device> changed_device;  // with all of them
  double changed_ratio = 1;              // of the time with all of them
  std::string command;
  DeviceNotes notes = {};
};

std::string hardware_plan_text(const HardwarePlanReport& report);
Json hardware_plan_json(const HardwarePlanReport& report);
std::string hardware_plan_svg(const HardwarePlanReport& report);
std::string hardware_plan_html(const HardwarePlanReport& report);

}  // namespace foretoken
