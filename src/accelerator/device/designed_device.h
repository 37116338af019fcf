// A designed accelerator as a device of the layers above: its sheet, and kernel times from mappings onto it.
#pragma once

#include <cstdint>
#include <memory>

#include "accelerator/architecture.h"
#include "accelerator/formats/architecture_json.h"
#include "accelerator/workload/network_map.h"
#include "base/json.h"
#include "hardware/device.h"
#include "kernel/kernel.h"
#include "kernel/power.h"

namespace foretoken {

// The sheet that a design implies: peak of its multipliers for number formats up to their width (integer multipliers
// take integers only), bandwidth and size of its outermost memory. Where the design gives neither bandwidth nor size, a
// usual module of its kind is assumed; InputError where its kind is not known: nothing above a kernel can do without.
Device device_of(const Architecture& architecture);

// InputError where a device file's bandwidth or peaks are not those of the design inside it, as when only one of the
// two was changed.
void check_sheet(const Device& device, const Architecture& architecture);

// That sheet as a device file with the design inside, which foretoken step, train and serve take.
Json device_json(const AcceleratorDesign& design);

// Multiplications by the best mapping found in so many tries, with tensors as wide as their formats; the rest by the
// bandwidth of the sheet or by the vector unit, whichever takes longer, and attention's softmax after its products,
// whose scores stay on the chip (workload/fusion.h) where that is faster.
// Searches once for each shape. Sizes that change from step to step (tokens, keys) are searched at four sizes to a
// doubling: times of a layer are interpolated over its tokens, those of attention scaled by its operations. The
// constraints are called from many threads.
std::shared_ptr<const DescribedKernels> mapped_kernels(Architecture architecture, ConstraintsFor constraints,
                                                       int64_t tries = 30'000);

// Energies of the design as a power model takes them: per FLOP of a large product with what it moves on the chip, and
// per byte of the outermost memory. The limit is what the design draws with everything at its full rate.
PowerCalibration design_power(const Architecture& architecture, const ConstraintsFor& constraints);

}  // namespace foretoken
