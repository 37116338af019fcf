// The layers of a network on systolic arrays, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "accelerator/systolic/partition.h"
#include "accelerator/systolic/simulate.h"
#include "accelerator/workload/network_layer.h"

namespace foretoken {

struct RepeatedSystolicLayer {
  std::string name;
  SystolicLayer layer;
  int64_t repeats = 1;
};

// A convolution on its padded input. Groups, images, products of a batch and equal layers of the network are repeats.
// InputError for a convolution with dilation, and for more than 2^53 repeats.
RepeatedSystolicLayer systolic_layer(const NetworkLayer& layer);

// Of one repeat.
struct SystolicLayerRun {
  Dataflow dataflow = Dataflow::output_stationary;
  SystolicCompute compute;
  std::optional<SystolicResult> memory;  // nothing for a layer too large to be run word by word

  int64_t cycles() const { return memory ? memory->total_cycles : compute.cycles; }
};

// With the dataflow of `tried` that takes the fewest cycles, then the fewest DRAM words, then the first.
SystolicLayerRun run_systolic_layer(const SystolicArray& array, const SystolicLayer& layer,
                                    std::span<const Dataflow> tried);

struct CoreGrid {
  int64_t cores = 1;
  std::optional<int64_t> rows;  // nothing: any grid of so many cores
};

struct CoresRun {
  Dataflow dataflow = Dataflow::output_stationary;
  PartitionedGemm best;
  int64_t one_core_cycles = 0;  // with the same dataflow
};

// Cycles alone: what SRAMs and DRAM take is not looked at.
CoresRun run_on_cores(const SystolicArray& core, const SystolicLayer& layer, std::span<const Dataflow> tried,
                      const CoreGrid& grid);

}  // namespace foretoken
