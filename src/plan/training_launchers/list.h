// One function per framework; each is defined in the file of its name.
#pragma once

#include "plan/training_launch.h"

namespace foretoken {

TrainingLauncher megatron_lm_launcher();
TrainingLauncher megatron_bridge_launcher();
TrainingLauncher torchtitan_launcher();
TrainingLauncher axolotl_launcher();
TrainingLauncher torchtune_launcher();
TrainingLauncher deepspeed_launcher();

}  // namespace foretoken
