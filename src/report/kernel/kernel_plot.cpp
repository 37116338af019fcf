#include "report/kernel/kernel_plot.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "report/kernel/kernel_report.h"
#include "report/kernel/roofline_svg.h"

namespace foretoken {

std::optional<BytesPerSecond> cache_bandwidth_of(const KernelExplanation& explanation) {
  for (const Explained& line : explanation.lines) {
    if (line.name == "l2_rate") return BytesPerSecond(line.value);
  }
  return std::nullopt;
}

std::string kernel_plot(const KernelFamily& family, const Device& device, std::span<const PlottedKernel> predicted,
                        std::span<const MeasuredRow> measured, std::optional<BytesPerSecond> cache_bandwidth) {
  const auto unplaced = [&](const std::string& expected) {
    throw InputError({.field = "plot", .value = family.name, .expected = expected});
  };
  if (predicted.empty()) unplaced("at least one kernel to draw");
  if (!(predicted.front().estimate.work.flops.value() > 0))
    unplaced("a kernel that multiplies: kernels that only move bytes cannot be placed on a roofline");
  std::vector<DType> types;
  for (const PlottedKernel& kernel : predicted) {
    const DType type = kernel.estimate.work.math;
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  std::optional<RooflineFigure> roofs = device_roofs(device, types);
  if (!roofs) {
    unplaced(fmt::format("a device with a known {} peak and bandwidth, which {} does not have",
                         dtype_name(types.front()), device.name));
  }
  RooflineFigure& figure = *roofs;
  figure.title = fmt::format("{} on {}", family.name, device.title);
  figure.subtitle = predicted.size() == 1
                        ? predicted.front().label
                        : fmt::format("{} kernels; each point is one call at its predicted time", predicted.size());
  figure.cache_bandwidth = cache_bandwidth;
  for (const PlottedKernel& kernel : predicted) {
    const Work& work = kernel.estimate.work;
    const Estimate& seconds = kernel.estimate.seconds;
    figure.predicted.push_back({.flops_per_byte = work.flops.value() / work.bytes().value(),
                                .rate = work.flops / Seconds(seconds.value),
                                .low = work.flops / Seconds(seconds.high),
                                .high = work.flops / Seconds(seconds.low),
                                .label = predicted.size() == 1 ? interval_text(seconds) : kernel.label});
  }
  for (const MeasuredRow& row : measured) {
    const Work& work = row.predicted.work;
    figure.measured.push_back({.flops_per_byte = work.flops.value() / work.bytes().value(),
                               .measured = work.flops / Seconds(row.measured_seconds),
                               .predicted = work.flops / Seconds(row.predicted.seconds.value),
                               .label = sizes_text(row.shape)});
  }
  return roofline_svg(figure);
}

}  // namespace foretoken
