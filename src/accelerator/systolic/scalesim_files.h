// SCALE-Sim's own input files: a configuration (.cfg) and a topology (.csv) of convolutions or GEMMs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/systolic/array.h"

namespace foretoken {

struct ScaleSimConfig {
  std::string run_name;
  SystolicArray array;
};

struct NamedSystolicLayer {
  std::string name;
  SystolicLayer layer;
};

// Sections [general], [run_presets] and [architecture_presets]; [layout] gives the bandwidths of reads where it stands,
// as in v3. Sections that say nothing about time ([sparsity], [energy] and others) are passed over, but sparsity that
// is switched on is an InputError: it would be ignored in silence otherwise.
ScaleSimConfig read_scalesim_config(const std::filesystem::path& path);
ScaleSimConfig parse_scalesim_config(std::string_view text, const std::string& source);

// A row: name, then M, N, K, or the eight sizes of a convolution (the column stride may be left out). Which of the two
// is seen in the header. A depthwise layer (DP in its name) is one layer per channel.
std::vector<NamedSystolicLayer> read_scalesim_topology(const std::filesystem::path& path);
std::vector<NamedSystolicLayer> parse_scalesim_topology(std::string_view text, const std::string& source);

}  // namespace foretoken
