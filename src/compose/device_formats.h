// Which number formats a device multiplies in, and what engines do with weights in others.
#pragma once

#include <optional>
#include <string>

#include "base/number_format.h"
#include "hardware/device.h"
#include "model/model.h"

namespace foretoken {

// False for fp8 and fp4 arithmetic that the device's sheet does not have, and for NVFP4 beside NVIDIA's. Other formats
// always have a roof that software falls back to.
bool multiplies_in(const Device& device, DType math);
bool multiplies_in(const Device& device, Scheme scheme);

// Engines keep a KV cache of the format on the device. An fp8 cache needs fp8 arithmetic, a TPU, or an NVIDIA GPU since
// Ampere: attention kernels widen the cache there.
bool keeps_cache_in(const Device& device, DType type);

// How engines run weights of `scheme` on a device that does not multiply in it: the weights stay narrow and are
// multiplied in bf16 (vLLM and SGLang by Marlin kernels, NVIDIA GPUs since Ampere). Nothing where no engine does.
std::optional<Scheme> weight_only_form(Scheme scheme, const Device& device);

// Every part of the model is in a format that engines run on the device, natively or as weights alone.
bool loads_on(const Model& model, const Device& device);

// The model as engines run it on the device, with a note where its weights are multiplied in another format than they
// are stored in. InputError, which names the device's formats, where no engine runs it there.
Model run_on(Model model, const Device& device);

// InputError, with the formats that the device has, for arithmetic that it does not have. `field` asked for it.
void check_multiplies_in(const std::string& field, DType math, const Device& device, std::string_view asked);
void check_multiplies_in(const std::string& field, Scheme scheme, const Device& device, std::string_view asked);

}  // namespace foretoken
