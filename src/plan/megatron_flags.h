// A training plan as Megatron-LM's command line says it.
#pragma once

#include <string>

#include "training/training_plan.h"

namespace foretoken {

// One line. Schedules that Megatron-LM does not have are left out; --sharding of gradients and parameters is that of
// Megatron-FSDP.
std::string megatron_flags(const TrainingPlan& plan);

}  // namespace foretoken
