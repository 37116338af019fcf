#include "training/import/formats/list.h"

#include "training/import/config_format.h"

namespace foretoken {

// Add your line here; a file is taken for the format most of whose keys it has, the first of equals.
std::span<const ConfigFormat> config_formats() {
  static const ConfigFormat formats[] = {megatron_arguments_format(), nemo_format(),       llm_foundry_format(),
                                         deepspeed_format(),          torchtitan_format(), axolotl_format(),
                                         torchtune_format(),          accelerate_format(), trainer_format()};
  return formats;
}

}  // namespace foretoken
