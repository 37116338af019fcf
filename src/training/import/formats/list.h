// The formats, one file each.
#pragma once

#include "training/import/config_format.h"

namespace foretoken {

ConfigFormat megatron_arguments_format();
ConfigFormat nemo_format();
ConfigFormat llm_foundry_format();
ConfigFormat deepspeed_format();

}  // namespace foretoken
