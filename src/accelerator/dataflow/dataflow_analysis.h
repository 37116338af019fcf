// What a dataflow costs on an accelerator of elements, a shared buffer (L2) and a network: the method of MAESTRO (Kwon
// et al., MICRO 2019), count for count. docs/accelerators/dataflow.md says where that differs from what hardware would
// do.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "accelerator/dataflow/dataflow_hardware.h"
#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/directive.h"

namespace foretoken {

// MAESTRO's energies: one multiplication, and one access to a buffer as a multiple of it.
inline constexpr double mac_picojoules = 0.23;
inline constexpr double l1_access_in_macs = 1.68;
inline constexpr double l2_access_in_macs = 18.61;

// Numbers read from and written to the buffers, of one tensor.
struct TensorAccesses {
  int64_t l1_read = 0;
  int64_t l1_write = 0;
  int64_t l2_read = 0;
  int64_t l2_write = 0;
};

struct DataflowCost {
  int64_t runtime_cycles = 0;
  int64_t macs = 0;  // as the dataflow does them: with those of padded edges, without what it leaves out
  TensorAccesses input;
  TensorAccesses filter;
  TensorAccesses output;
  int64_t l1_bytes = 0;  // of one element, all tensors double-buffered
  int64_t l2_bytes = 0;
  double average_pes = 0;                // at work, over all steps
  int64_t noc_bandwidth_needed = 0;      // numbers per cycle to hide the traffic of the busiest step
  int64_t offchip_bandwidth_needed = 0;  // the same of the memory, which fills L2 once per step

  double macs_per_cycle() const;
};

// Of the multiplications and every access to L1 and L2 counted in `cost`, at MAESTRO's figures.
double dataflow_energy_nanojoules(const DataflowCost& cost);

// InputError (about `source`) for directives that do not fit the layer or the hardware.
DataflowCost analyse_dataflow(const DataflowLayer& layer, std::span<const Directive> dataflow,
                              const DataflowHardware& hardware, DataflowReading reading, const std::string& source);

}  // namespace foretoken
