// MAESTRO's mapping files: networks of layers, each with its dataflow. docs/accelerators/dataflow.md describes them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/directive.h"

namespace foretoken {

struct MappedLayer {
  DataflowLayer layer;
  std::vector<Directive> dataflow;  // a layer without one of its own has that of the layer before it
};

struct MappedNetwork {
  std::string name;
  std::vector<MappedLayer> layers;
};

// `source` names the text in errors, which carry the line.
MappedNetwork parse_mapped_network(std::string_view text, const std::string& source);
MappedNetwork read_mapped_network(const std::filesystem::path& path);

// Directives alone: `Dataflow { ... }`, or the lines that stand between the braces.
std::vector<Directive> parse_directives(std::string_view text, const std::string& source);
std::vector<Directive> read_directives(const std::filesystem::path& path);

}  // namespace foretoken
