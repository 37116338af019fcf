// A model from its config.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model/model.h"

namespace foretoken {

// Reads a config.json, a file of data/models, or a directory that holds a config.json; hf_quant_config.json beside it
// is honoured. An unknown family is an InputError that lists the keys it lacks.
Model read_model_config(const std::filesystem::path& file_or_directory);

// The same from text already in memory; `source` names it in errors.
Model parse_model_config(std::string_view text, const std::string& source, const std::string& name);

}  // namespace foretoken
