// Which layouts there are for a question.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/serving/serving_question.h"

namespace foretoken {

struct LayoutSpace {
  std::vector<ServingLayout> layouts;
  // Where every number of replicas would be too many layouts, numbers are this share apart at most; 0 = none is left
  // out.
  double largest_gap = 0;
};

// Every layout of the choices that suits the model and the hardware, whether or not it fits in memory, in a fixed
// order: engines of the defaults first. A tensor group lies within a node; ranks that share experts may fill several.
// Where a rate is asked for, every number of replicas is a layout, up to some hundred thousand layouts; else as many
// replicas as the devices and the budget allow. InputError where the choices alone are too many.
// `check_wanted`, where there is one, is called often; what it throws ends the work.
LayoutSpace layout_space(const ServingQuestion& question, const std::function<void()>& check_wanted = {});

// Why engines and formats of the choices are not tried on some of the devices, a sentence each.
std::vector<std::string> left_out(const ServingQuestion& question);

// How many of the devices that are offered the budget pays for; all of them without a budget or a price.
int64_t affordable_devices(const ServingQuestion& question, const HardwareChoice& hardware);

// InputError where the budget pays for not one device: a question about nothing.
void check_budget(const ServingQuestion& question);

// Why an engine has no layout on a device, for people; for engines that have none.
std::string why_no_layouts(const ServingQuestion& question, const HardwareChoice& hardware, const std::string& engine);
// "TP16 was not tried on h100_sxm: {hardware} offers only 8 x h100_sxm." For sizes that were asked
// for and are tried on no device.
std::vector<std::string> tensor_sizes_left_out(const ServingQuestion& question);

}  // namespace foretoken
