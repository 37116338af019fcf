// Timings of whole networks, and of kernels by themselves, on a device to be adapted to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compose/edge/fusion_rules.h"
#include "kernel/edge/adapt_edge.h"
#include "model/onnx/graph.h"

namespace foretoken {

// A network as the rules join it, and node by node. InputError for number formats that the known device was not
// measured in.
EdgeKnownTime known_network_time(const OnnxGraph& graph, const FusionRules& rules, const EdgePredictor& known,
                                 const std::string& source);

struct NetworkRow {
  std::string name;  // of the file, or the kind and parameters of a kernel
  EdgeTiming timing;
};

// What a table of networks and kernels is read with.
struct NetworkTableContext {
  const EdgePredictor& known;
  const FusionRules& rules;
  OnnxOptions graph;
};

// A CSV file with the column `network` (an ONNX file, by its place relative to the table), or `kind` and `params` of a
// kernel (as `foretoken profile cpu --plan` writes them), or all three with one or the other empty; `ms` where `timed`.
std::vector<NetworkRow> read_network_rows(const std::filesystem::path& path, const NetworkTableContext& context,
                                          bool timed);

}  // namespace foretoken
