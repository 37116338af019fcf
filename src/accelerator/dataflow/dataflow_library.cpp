#include "accelerator/dataflow/dataflow_library.h"

#include <algorithm>

#include <fmt/format.h>

#include "accelerator/dataflow/dataflow_file.h"
#include "base/error.h"
#include "base/kinds.h"

namespace foretoken {
namespace {

double figure_to_beat(const DataflowCost& cost, DataflowObjective objective) {
  const auto cycles = static_cast<double>(cost.runtime_cycles);
  switch (objective) {
    case DataflowObjective::cycles:
      return cycles;
    case DataflowObjective::energy:
      return dataflow_energy_nanojoules(cost);
    case DataflowObjective::energy_delay:
      return dataflow_energy_nanojoules(cost) * cycles;
  }
  return cycles;
}

std::string missing_buffer(const DataflowCost& cost, const DataflowHardware& hardware) {
  if (cost.l1_bytes > hardware.l1_bytes) {
    return fmt::format("needs {} bytes of L1; an element has {}", cost.l1_bytes, hardware.l1_bytes);
  }
  if (cost.l2_bytes > hardware.l2_bytes) {
    return fmt::format("needs {} bytes of L2; there are {}", cost.l2_bytes, hardware.l2_bytes);
  }
  return "";
}

}  // namespace

std::vector<NamedDataflow> read_dataflow_library(const std::filesystem::path& folder) {
  std::vector<NamedDataflow> library;
  std::error_code none_there;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none_there)) {
    if (entry.path().extension() != ".m") continue;
    library.push_back({.name = entry.path().stem().string(), .directives = read_directives(entry.path())});
  }
  if (library.empty()) {
    throw InputError({.source = folder.string(), .expected = "a folder with dataflows, such as kcp_ws.m"});
  }
  std::ranges::sort(library, {}, &NamedDataflow::name);
  return library;
}

const NamedDataflow& find_dataflow(std::span<const NamedDataflow> library, const std::string& name) {
  return kind_named(library, name, {.field = "dataflow"});
}

std::vector<Directive> directives_for(const DataflowLayer& layer, const NamedDataflow& dataflow) {
  std::vector<Directive> directives = dataflow.directives;
  for (const LayerDim dim : {LayerDim::N, LayerDim::G}) {
    const bool is_mapped = std::ranges::find(directives, dim, &Directive::dim) != directives.end();
    if (layer.sizes[dim] == 0 || is_mapped) continue;
    directives.insert(directives.begin(), Directive{.size = {.constant = 1}, .offset = {.constant = 1}, .dim = dim});
  }
  return directives;
}

TriedDataflow try_directives(const DataflowLayer& layer, const std::string& name, std::span<const Directive> directives,
                             const DataflowHardware& hardware, DataflowReading reading) {
  TriedDataflow tried{.name = name};
  try {
    tried.cost = analyse_dataflow(layer, directives, hardware, reading, name);
    tried.why_not = missing_buffer(tried.cost, hardware);
  } catch (const InputError& error) {
    tried.why_not = fmt::format("{}: expected {}", error.problem().value, error.problem().expected);
  }
  return tried;
}

TriedDataflow try_dataflow(const DataflowLayer& layer, const NamedDataflow& dataflow, const DataflowHardware& hardware,
                           DataflowReading reading) {
  const DataflowLayer convolution = as_convolution(layer);
  return try_directives(convolution, dataflow.name, directives_for(convolution, dataflow), hardware, reading);
}

std::vector<TriedDataflow> rank_dataflows(const DataflowLayer& layer, std::span<const NamedDataflow> library,
                                          const DataflowHardware& hardware, DataflowObjective objective) {
  std::vector<TriedDataflow> tried;
  for (const NamedDataflow& dataflow : library) {
    tried.push_back(try_dataflow(layer, dataflow, hardware, DataflowReading::physical));
  }
  std::ranges::sort(tried, [&](const TriedDataflow& a, const TriedDataflow& b) {
    if (a.why_not.empty() != b.why_not.empty()) return a.why_not.empty();
    // Of two that are equally good, the one with less energy, then with fewer cycles.
    for (const DataflowObjective own : {objective, DataflowObjective::energy, DataflowObjective::cycles}) {
      const double of_a = figure_to_beat(a.cost, own), of_b = figure_to_beat(b.cost, own);
      if (of_a != of_b) return of_a < of_b;
    }
    return a.name < b.name;
  });
  return tried;
}

}  // namespace foretoken
