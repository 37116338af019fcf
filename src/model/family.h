// A model family: how one `model_type` spells its config.json. One reader per family in families/, listed by hand in
// families/list.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace foretoken {

class ConfigReader;

struct Family {
  std::string_view model_types;  // space-separated; the first names the family
  std::string_view summary;
  // Fills shapes and layers. Name, family, number formats and common flags are set by the caller.
  Model (*read)(ConfigReader& config);
  bool reads_experts = false;  // routed experts, where the config has them
};

std::span<const Family> families();

// By model_type, or by an architecture such as LlamaForCausalLM; null when nobody reads it.
const Family* find_family(std::string_view model_type_or_architecture);

// Every model_type that is read, in the order of the list.
std::vector<std::string> known_model_types();
std::vector<std::string> model_types_with_experts();  // those of families that read routed experts

}  // namespace foretoken
