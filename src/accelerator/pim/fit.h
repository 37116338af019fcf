// What no data sheet says about a PIM machine, from measured runs: instructions per element and setup of each program,
// and what the host's transfers cost.
#pragma once

#include <span>

#include "accelerator/pim/device.h"
#include "accelerator/pim/prim_rows.h"

namespace foretoken {

// The device with programs and transfer laws that the rows speak of set to what fits them; the others stay as they are.
// Rows of unknown benchmarks, or that the machine cannot hold, are passed over. Kernels are taken to be bound by
// instructions: cycles per element are called instructions, waits for locks among them.
PimDevice fit_pim_device(const PimDevice& device, std::span<const PrimRow> rows);

// The same device with intervals that hold 90% of the rows, each predicted by a fit that has not seen it.
PimDevice with_fitted_intervals(const PimDevice& fitted, std::span<const PrimRow> rows);

}  // namespace foretoken
