// Looks over a folder of hardware descriptions and lists what is wrong: `foretoken check data`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace foretoken {

struct DataProblem {
  std::string file;
  std::string message;  // a whole sentence for a person; names the file
};

// Every file reads; its name is its stem; no two names or aliases of a kind collide; peaks grow as types get narrower;
// the fp32 peak agrees with processors x lanes x 2 x clock within 10 % (unless its fact has a note); GPUs whose kernels
// are known name their memory and agree with their generation; MIG profiles reach the whole device; nodes and clusters
// refer to what exists and promise no more than device and cards can give. Never throws for what it finds in files.
std::vector<DataProblem> check_hardware_data(const std::filesystem::path& folder);

}  // namespace foretoken
