// A search of accelerator designs: the best one in a sentence, the next, which knobs mattered, how the searches learnt.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/accelerator/accelerator_plan.h"

namespace foretoken {

// Looks at its parts, which must outlive it.
struct AcceleratorPlanReport {
  const AcceleratorPlan& plan;
  const DesignSpace& space;
  const AcceleratorPlanQuestion& question;
  std::string work;     // what runs: resnet50
  std::string command;  // that asks the question again
};

// One sentence where no design keeps the limits; empty where one does.
std::string accelerator_plan_failure(const AcceleratorPlanReport& report);

// Begins with the failure, where there is one.
std::string accelerator_plan_text(const AcceleratorPlanReport& report);
Json accelerator_plan_json(const AcceleratorPlanReport& report);
// method,seed,evaluation, a column for each knob, energy_pj,cycles,latency_cycles,area_mm2,watts,fault: every design in
// the order of its evaluation.
std::string accelerator_plan_csv(const AcceleratorPlanReport& report);
// The best so far against evaluations, a line for each method: the median of its seeds.
std::string learning_curve_svg(const AcceleratorPlanReport& report);
std::string accelerator_plan_html(const AcceleratorPlanReport& report);

}  // namespace foretoken
