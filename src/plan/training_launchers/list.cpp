#include "plan/training_launchers/list.h"

namespace foretoken {

std::span<const TrainingLauncher> training_launchers() {
  // Add your line here; the names are what users type.
  static const TrainingLauncher list[] = {
      megatron_lm_launcher(), megatron_bridge_launcher(), torchtitan_launcher(),
      axolotl_launcher(),     torchtune_launcher(),       deepspeed_launcher(),
  };
  return list;
}

}  // namespace foretoken
