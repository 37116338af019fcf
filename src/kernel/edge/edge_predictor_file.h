// Edge predictors as versioned JSON: data/edge/devices/<name>.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "kernel/edge/edge_predictor.h"

namespace foretoken {

// The file ends with kernels and the times that this predictor gives for them.
std::string edge_predictor_json(const EdgePredictor& predictor);

// InputError for a newer version, missing keys, a file that was changed, or one whose kernels no longer come out as
// when it was written. `source` names the text.
EdgePredictor parse_edge_predictor(std::string_view text, const std::string& source);
EdgePredictor read_edge_predictor(const std::filesystem::path& path);

}  // namespace foretoken
