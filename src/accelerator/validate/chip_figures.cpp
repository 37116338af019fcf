#include <fmt/format.h>

#include "accelerator/nvdla.h"
#include "accelerator/row_stationary/chip.h"
#include "accelerator/row_stationary/estimate.h"
#include "accelerator/row_stationary/published_layers.h"
#include "accelerator/validate/validate_accelerator.h"

namespace foretoken {

std::vector<AcceleratorFigure> eyeriss_figures(const AcceleratorCaseFile& file) {
  const RowStationaryChip chip = read_row_stationary_chip(file.shipped / "chips" / "eyeriss_v1.json");
  std::vector<AcceleratorFigure> figures;
  for (const PublishedConvLayer& own : read_published_conv_layers(file.path).layers) {
    const RowStationaryResult result = estimate_row_stationary(chip, own.layer);
    const std::string id = own.network + "." + own.layer.name;
    figures.push_back({id, "processing_ms", own.processing.value() * kilo, result.processing.value() * kilo});
    figures.push_back({id, "total_ms", own.total.value() * kilo, result.total.value() * kilo});
    figures.push_back({id, "dram_mb", own.dram.value() / mega, result.dram.total().value() / mega});
    figures.push_back({id, "buffer_mb", own.buffer.value() / mega, result.buffer.total().value() / mega});
    figures.push_back({id, "active_pes", static_cast<double>(own.active_pes), static_cast<double>(result.active_pes)});
    figures.push_back({id, "power_mw", own.power.value() * kilo, result.power().value() * kilo});
  }
  return figures;
}

std::vector<AcceleratorFigure> nvdla_figures(const AcceleratorCaseFile& file) {
  const PublishedNvdla published = read_published_nvdla(file.path);
  std::vector<AcceleratorFigure> figures;
  for (const PublishedNvdlaRow& row : published.rows) {
    const double predicted = 1 / nvdla_network_time(row.configuration, published.layers).value();
    figures.push_back(
        {fmt::format("{}_macs", row.configuration.macs), "frames_per_s", row.frames_per_second, predicted});
  }
  return figures;
}

}  // namespace foretoken
