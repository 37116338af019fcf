// What a publication's table of a layer's operators means, beyond its columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_format.h"

namespace foretoken {

class Library;

struct LayerConventions {
  std::string source;
  std::string stack;  // whose launches the operators are
  DType dtype = DType::fp16;
  std::map<std::string, std::string, std::less<>> operators;  // name in the table -> launch of the stack
  // From here on a device's name says how it is connected, which its own description knows.
  std::vector<std::string> device_suffixes;
  // Where the table has no such column.
  std::string model;
  int64_t batch = 0, input_len = 0, context_len = 0, tensor = 0;
};

// InputError where something is missing, unknown or out of range.
LayerConventions read_layer_conventions(const std::filesystem::path& path);
LayerConventions layer_conventions_of(const Library& library);

// The device of "4xA100_NVLink3": the count is the plan's, the suffix the node's.
std::string layer_device_name(std::string_view text, const LayerConventions& conventions);

}  // namespace foretoken
