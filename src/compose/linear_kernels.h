// Linear layers as engines run them, where that differs from the multiply that was measured alone.
#pragma once

#include <string_view>

#include "compose/stack.h"
#include "kernel/kernel.h"
#include "model/shapes.h"

namespace foretoken {

// With Stack::tuned_linears, two corrections to the kernel's own estimate:
// - Measured multiplies of quantized layers include the cast of their input. With a scale that is known beforehand (fp8
//   per tensor, nvfp4) engines cast in the norm or activation before: the passes of the cast are taken off, at most
//   half of the whole, and nothing below what multiply units and DRAM need. A roofline holds no cast.
// - Up to 256 rows a layer takes no longer than one of more rows (8, 16, ... 256): tables have single sizes for which
//   the library picks a kernel two or three times too slow; engines that tune or pad do not show them.
KernelEstimate linear_estimate(const GemmShape& shape, std::string_view variant, const KernelPredictor& predictor,
                               const Stack& stack);

}  // namespace foretoken
