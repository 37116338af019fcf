// Dataflows that ship with the program, by name (`data/accelerators/dataflows/*.m`), and which of them suits a layer
// best.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "accelerator/dataflow/dataflow_analysis.h"
#include "accelerator/dataflow/dataflow_hardware.h"
#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/directive.h"

namespace foretoken {

struct NamedDataflow {
  std::string name;
  std::vector<Directive> directives;  // of a convolution: K, C, R, S, Y, X
};

// All of a folder, by name.
std::vector<NamedDataflow> read_dataflow_library(const std::filesystem::path& folder);

// InputError that suggests the nearest name.
const NamedDataflow& find_dataflow(std::span<const NamedDataflow> library, const std::string& name);

enum class DataflowObjective : uint8_t { cycles, energy, energy_delay };

// One dataflow tried on a layer.
struct TriedDataflow {
  std::string name;
  DataflowCost cost;
  std::string why_not;  // it cannot run, or its buffers are too small; empty for one that fits

  bool has_cost() const { return cost.runtime_cycles > 0; }  // also where only buffers are too small
};

// `directives` as they stand, on `layer` as it is.
TriedDataflow try_directives(const DataflowLayer& layer, const std::string& name, std::span<const Directive> directives,
                             const DataflowHardware& hardware, DataflowReading reading);

// A dataflow for convolutions on `layer` (a GEMM is taken as one).
TriedDataflow try_dataflow(const DataflowLayer& layer, const NamedDataflow& dataflow, const DataflowHardware& hardware,
                           DataflowReading reading);

// Every dataflow of the library on `layer`, by the physical reading: those that fit first, the best of them first of
// all, ties by name.
std::vector<TriedDataflow> rank_dataflows(const DataflowLayer& layer, std::span<const NamedDataflow> library,
                                          const DataflowHardware& hardware, DataflowObjective objective);

// `dataflow` for a convolution, applied to `layer`: batches and groups one after another where it does not say.
std::vector<Directive> directives_for(const DataflowLayer& layer, const NamedDataflow& dataflow);

}  // namespace foretoken
