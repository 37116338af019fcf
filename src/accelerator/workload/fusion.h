// Layers that run together, a few rows at a time, so that what one puts out stays on the chip for the next.
//
// The last layer of a group makes `rows` rows of its output at a time; each layer before it makes the rows that the
// next still lacks, and those already made stay in a line buffer (Alwani et al., MICRO 2016, without their
// recomputation). The two products of attention run together a few queries and heads at a time, all keys of them, so
// that no score leaves the chip (Kao et al., FLAT, ASPLOS 2023).
#pragma once

#include <span>
#include <vector>

#include "accelerator/workload/network_map.h"

namespace foretoken {

struct FusionOptions {
  MapperOptions mapper;
  int64_t alone_tries = 50'000;  // mappings of a layer alone: as many as without fusion, or fusion would seem to pay
  int level = 1;                 // that holds what passes between layers
  size_t most_layers = 4;        // in a group
  int64_t finalist_tries = 0;    // mappings of the best way to run a group, which is searched again; 0 = it is not
};

struct FusedGroup {
  size_t first = 0, count = 1;         // layers of the list
  int64_t rows = 0;                    // of the last layer at a time; 0 = a layer alone, all at once
  int64_t heads = 0;                   // of products beside each other at a time; 0 = there is one product
  double turns = 1;                    // so many times rows
  bool weights_stay = false;           // at the level, rather than read in every turn
  std::vector<FoundMapping> mappings;  // of one turn, by layer
  NetworkTotals totals;                // of all turns, and of all repetitions of the layers
};

struct FusionResult {
  std::vector<FusedGroup> groups;  // in the order of layers, every layer in one
  NetworkTotals together, apart;   // with these groups, and with every layer alone
};

// The groups of consecutive layers, each fed by the one before it alone, that take the least energy (cycles or latency,
// where the objective starts with one). Never worse by the objective than all layers alone. InputError when a layer
// says it is fed by one whose channels differ.
FusionResult fuse_layers(const Architecture& architecture, std::span<const AcceleratorLayer> layers,
                         const ConstraintsFor& constraints, const FusionOptions& options);

}  // namespace foretoken
