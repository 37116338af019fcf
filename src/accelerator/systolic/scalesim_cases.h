// Cases of SCALE-Sim with the figures it reported, one JSON file of many: what `foretoken validate accel` compares
// with.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accelerator/systolic/array.h"
#include "accelerator/systolic/simulate.h"

namespace foretoken {

// Figures by the name SCALE-Sim's reports give them ("SRAM IFMAP Reads", "Avg OFMAP DRAM BW", "total_cycles").
using SystolicFigures = std::map<std::string, double>;

struct ScaleSimCase {
  std::string id;
  SystolicArray array;
  SystolicLayer layer;
  SystolicFigures expected;
  std::string why_not;  // not empty: the case asks for something that is not read
};

std::vector<ScaleSimCase> read_scalesim_cases(const std::filesystem::path& path);

// A result under the names that cases use; percentages as SCALE-Sim prints them.
SystolicFigures scalesim_figures(const SystolicResult& result);

}  // namespace foretoken
