// The formats, one file each.
#pragma once

#include "training/import/config_format.h"

namespace foretoken {

ConfigFormat megatron_arguments_format();
ConfigFormat nemo_format();
ConfigFormat llm_foundry_format();
ConfigFormat deepspeed_format();
ConfigFormat torchtitan_format();
ConfigFormat axolotl_format();
ConfigFormat torchtune_format();
ConfigFormat accelerate_format();
ConfigFormat trainer_format();

}  // namespace foretoken
