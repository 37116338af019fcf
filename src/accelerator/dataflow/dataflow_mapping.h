// Directives as a loop nest: the same work on a memory, L2, clusters, L1 and multipliers, for the evaluator of loop
// nests.
#pragma once

#include <span>
#include <string>

#include "accelerator/architecture.h"
#include "accelerator/dataflow/dataflow_hardware.h"
#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/directive.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"

namespace foretoken {

struct DataflowMapping {
  Architecture architecture;
  Problem problem;
  Mapping mapping;
};

// Temporal maps of the first level become loops of the memory (L2 holds what one step of the array needs), those of
// inner levels loops of their cluster, spatial maps spread over the level below, and what an element holds is left to
// its L1. Energies are MAESTRO's, and for the memory 200 multiplications per word (Eyeriss, ISCA 2016).
//
// InputError (about `source`) for a directive that loops cannot express: tiles that overlap by more than
// the window, that do not fill a tile further out evenly, or two spatial maps in a cluster other than a window sliding
// along (Y with R, X with S).
DataflowMapping to_mapping(const DataflowLayer& layer, std::span<const Directive> dataflow,
                           const DataflowHardware& hardware, const std::string& source);

}  // namespace foretoken
