// Which model runs, in which number formats: names as users give them, and the model that engines then run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/number_format.h"
#include "hardware/device.h"
#include "model/model.h"
#include "model/step.h"

namespace foretoken {

class Library;

struct ModelSpec {
  std::string model = {};         // built-in name, config.json, or a directory with one
  std::string quantization = {};  // scheme of the linear layers, by part as in "nvfp4,attention=bf16"; empty = config's
  std::string kv_cache_dtype = "auto";
  std::optional<DType> dtype = {};     // of activations and what is not quantized; nothing = as the config says
  std::string expert_popularity = {};  // "zipf:A", "balancedness:B", or a table; empty = by chance
  int64_t redundant_experts = 0;       // copies of busy experts, spread over the ranks
};

// As engines run it on the device, where one is given: InputError for a format that the device does not have.
Model open_model(const Library& library, const ModelSpec& spec, const std::optional<Device>& on = {},
                 const ParallelPlan& plan = {});
DType kv_cache_dtype(const ModelSpec& spec, const Model& opened);

// InputError where the model's name states another format than the one asked for.
void check_agrees_with_name(const std::string& field, Scheme asked, const Model& model);

}  // namespace foretoken
