// One step of a model as one page: the answer, where its time and a device's memory go, the roofline, energy and cost,
// and how far to trust it.
#pragma once

#include <optional>
#include <string>

#include "compose/step_estimate.h"
#include "compose/sustained_step.h"
#include "hardware/device.h"
#include "model/model.h"
#include "report/page/cost_parts.h"
#include "report/page/trust_panel.h"

namespace foretoken {

struct StepPage {
  const StepEstimate& step;
  const Model& model;
  const Device& device;
  std::optional<SustainedStep> sustained;  // nothing where the device's power is not known
  std::optional<RentedWork> rent;
  Trust trust;
  std::string command;  // that made it
  std::string more;     // the same as text for a terminal
};

std::string step_page_html(const StepPage& page);

}  // namespace foretoken
