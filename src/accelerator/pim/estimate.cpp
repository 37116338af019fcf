#include "accelerator/pim/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/range.h"

namespace foretoken {
namespace {

void check_pim_kernel(const PimDevice& device, const PimKernel& kernel) {
  const auto check = [&](const char* what, double value, double least, double most) {
    if (value >= least && value <= most) return;
    throw InputError({.source = device.name,
                      .path = what,
                      .value = fmt::format("{}", value),
                      .expected = range_text(Range<double>{least, most})});
  };
  check("DPUs", static_cast<double>(kernel.dpus), 1, static_cast<double>(device.most_dpus.value));
  check("tasklets", static_cast<double>(kernel.tasklets), 1, static_cast<double>(device.most_tasklets.value));
  check("bytes on a DPU", kernel.resident_per_dpu.value(), 0, device.memory.value.value());
  check("bytes of a DMA block", kernel.block.value(), 8, 2048);
  check("elements on a DPU", kernel.elements_per_dpu, 0, 1e15);
  check("instructions per element", kernel.instructions_per_element, 0, 1e9);
}

double pim_pipeline_cycles(const PimDevice& device, const PimKernel& kernel) {
  const double block_elements =
      kernel.block / std::max({kernel.read_per_element, kernel.written_per_element, Bytes(1)});
  const double blocks = std::ceil(kernel.elements_per_dpu / block_elements);
  const double busiest_thread =
      std::min(kernel.elements_per_dpu, block_elements * std::ceil(blocks / static_cast<double>(kernel.tasklets)));
  const double issue_slots =
      std::max(kernel.elements_per_dpu, busiest_thread * static_cast<double>(device.cycles_per_tasklet.value));
  return issue_slots * kernel.instructions_per_element;
}

double pim_dma_cycles(const PimDevice& device, const PimKernel& kernel) {
  const auto cycles = [&](Bytes per_element, double setup) {
    const double bytes = per_element.value() * kernel.elements_per_dpu;
    return bytes * (device.cycles_per_byte.value + setup / kernel.block.value());
  };
  return cycles(kernel.read_per_element, device.read_setup_cycles.value) +
         cycles(kernel.written_per_element, device.write_setup_cycles.value);
}

Estimate with_relative_error(Seconds time, double relative_error, Confidence confidence) {
  // In logarithms, so that a wide interval stays above zero.
  return {.value = time.value(),
          .low = time.value() / (1 + relative_error),
          .high = time.value() * (1 + relative_error),
          .kind = confidence};
}

Estimate pim_transfer_seconds(const PimDevice& device, const PimKernel& kernel, const PimTransfer& transfer) {
  const PimTransferLaw& law = device.transfer(transfer.kind);
  const auto dpus = static_cast<double>(kernel.dpus);
  const bool outside = !kernel.dpus_are_measured ||
                       (law.rates.size() > 1 && (dpus < law.rates.front().dpus || dpus > law.rates.back().dpus));
  const Estimate inside = with_relative_error(law.seconds(dpus, transfer.bytes, transfer.calls), law.relative_error,
                                              Confidence::interpolated);
  return outside ? outside_measured(inside) : inside;
}

Estimate pim_phase_seconds(const PimDevice& device, const PimKernel& kernel, PimPhase phase) {
  std::vector<Estimate> parts;
  for (const PimTransfer& transfer : kernel.transfers) {
    if (transfer.phase == phase) parts.push_back(pim_transfer_seconds(device, kernel, transfer));
  }
  return parts.empty() ? exactly(0) : sum_of_correlated(parts);  // one host, one library: they err together
}

}  // namespace

Estimate PimEstimate::total() const {
  return sum_of_independent(std::array{kernel, to_dpus, from_dpus, between_dpus});
}

bool pim_kernel_fits(const PimDevice& device, const PimKernel& kernel) {
  return kernel.dpus <= device.most_dpus.value && kernel.tasklets <= device.most_tasklets.value &&
         kernel.resident_per_dpu <= device.memory.value;
}

PimEstimate estimate_pim(const PimDevice& device, const PimKernel& kernel) {
  check_pim_kernel(device, kernel);
  PimEstimate estimate{.to_dpus = pim_phase_seconds(device, kernel, PimPhase::to_dpus),
                       .from_dpus = pim_phase_seconds(device, kernel, PimPhase::from_dpus),
                       .between_dpus = pim_phase_seconds(device, kernel, PimPhase::between_dpus),
                       .pipeline_cycles = pim_pipeline_cycles(device, kernel),
                       .dma_cycles = pim_dma_cycles(device, kernel)};
  const double cycles = std::max(estimate.pipeline_cycles, estimate.dma_cycles);
  estimate.kernel = with_relative_error(kernel.setup + Seconds(cycles / device.clock.value.value()),
                                        kernel.relative_error, kernel.confidence);
  if (kernel.is_outside) estimate.kernel = outside_measured(estimate.kernel);
  return estimate;
}

}  // namespace foretoken
