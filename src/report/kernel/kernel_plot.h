// Predictions of one family, and measurements like them, on the roofline of a device.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kernel/explain.h"
#include "kernel/family.h"
#include "kernel/measured_rows.h"

namespace foretoken {

struct PlottedKernel {
  KernelEstimate estimate;
  std::string label;
};

// The rate at which a form lets L2 serve traffic; nothing where the roofline answered.
std::optional<BytesPerSecond> cache_bandwidth_of(const KernelExplanation& explanation);

// SVG text. A flat roof for each type that the kernels multiply in. InputError where the kernels have no FLOPs or the
// device no peak: they have no place on a roofline.
std::string kernel_plot(const KernelFamily& family, const Device& device, std::span<const PlottedKernel> predicted,
                        std::span<const MeasuredRow> measured, std::optional<BytesPerSecond> cache_bandwidth);

}  // namespace foretoken
