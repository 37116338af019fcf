// torch_dtype, quantization_config and hf_quant_config.json: how weights and activations are stored.
#pragma once

#include <optional>

#include "base/json.h"
#include "model/config_reader.h"
#include "model/model.h"

namespace foretoken {

// Sets dtype, the schemes and cache_dtype of `model`, whose layers are read. `quantization_beside` is
// hf_quant_config.json, where there is one.
void read_number_formats(ConfigReader& config, const std::optional<JsonView>& quantization_beside, Model& model);

}  // namespace foretoken
