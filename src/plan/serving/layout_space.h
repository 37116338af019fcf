// Which layouts there are for a question.
#pragma once

#include <vector>

#include "plan/serving/serving_question.h"

namespace foretoken {

// Every layout of the choices that suits the model and the hardware, whether or not it fits in memory, in a fixed
// order: engines of the defaults first. A tensor group lies within a node; so do ranks that share experts. Where a rate
// is asked for, every number of replicas is a layout; else as many as the devices and the budget allow.
std::vector<ServingLayout> serving_layouts(const ServingQuestion& question);

}  // namespace foretoken
