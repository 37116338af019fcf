// A decode step on a device whose memory runs attention while the device works on other sequences.
//
// The batch is cut in two: while the memory runs the attention of one half, the device runs the other layers of the
// other half, and they change over twice a layer (Heo et al., NeuPIMs, ASPLOS 2024, sub-batch interleaving). Neither
// slows the other down: that is what a second row buffer in each bank is for.
#pragma once

#include "compose/stage_estimate.h"
#include "kernel/kernel.h"

namespace foretoken {

// Of both halves through all layers. `in_memory` and `on_device` are the seconds of one half.
double seconds_beside_memory(double in_memory, double on_device, double layers);

// `whole` and `half`: the same stage with all sequences and with half of them. The whole where that is faster.
StageEstimate beside_memory(const StageEstimate& whole, const StageEstimate& half, const KernelPredictor& predictor);

}  // namespace foretoken
