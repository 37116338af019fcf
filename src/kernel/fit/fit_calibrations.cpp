#include "kernel/fit/fit_calibrations.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/statistics.h"
#include "kernel/forms/call.h"

namespace foretoken {
namespace {

// Rows by form and device.
using RowsByForm = std::map<const FormKind*, std::map<std::string, MeasuredDevice>>;

// What a launch costs on any GPU, about: small calls take that long whatever the roofline says.
constexpr double launch_seconds = 5e-6;

// A sweep in the wrong unit: most of its rows would beat physics, or crawl. Over roofline and launch together, the
// medians of 53 real sweeps lie between 0.3 and 5.
void check_units(const std::string& device, std::string_view family, const std::vector<double>& over_expected) {
  constexpr size_t enough = 20;
  if (over_expected.size() < enough) return;
  const double typical = quantile(over_expected, 0.5);
  constexpr double too_fast = 0.02, too_slow = 100;
  if (typical > too_fast && typical < too_slow) return;
  throw InputError({.source = fmt::format("measurements of {} on {}", family, device),
                    .path = "latency_us",
                    .value = fmt::format("{} rows, typically {:.3g} times the roofline plus a launch",
                                         over_expected.size(), typical),
                    .expected = "microseconds of one call; these look off by a factor of a thousand or more"});
}

// Share of the memory roofline that weight-streaming rows of a group reach.
using StreamingEfficiency = std::map<std::string, std::vector<double>>;  // by call group

bool streams_weights(const KernelEstimate& roofline) {
  return roofline.memory > microseconds(100) && roofline.memory > 2.0 * roofline.compute;
}

void mark_pathological(const StreamingEfficiency& efficiency, MeasuredDevice& measured) {
  constexpr double sick = 0.35;
  for (const auto& [group, values] : efficiency) {
    if (quantile(values, 0.5) < sick) measured.pathological_groups.insert(group);
  }
}

bool is_wanted(const std::vector<std::string>& wanted, std::string_view family) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), family) != wanted.end();
}

RowsByForm collect(const std::vector<KernelValidationRequest>& requests, const HardwareCatalogue& hardware,
                   const FitOptions& options) {
  std::vector<std::string> withheld;
  for (const std::string& name : options.without) withheld.push_back(generation_of(hardware.device(name)));
  RowsByForm rows;
  std::map<std::pair<std::string, std::string>, std::vector<double>> over_expected;
  std::map<std::string, Device> devices;
  std::map<std::pair<const FormKind*, std::string>, StreamingEfficiency> streaming;
  for (const KernelValidationRequest& request : requests) {
    const auto roofline_only = [](const Device& device) { return KernelPredictor(device); };
    validate_kernels(request, hardware, roofline_only, [&](const ScoredKernel& row) {
      const FormKind* kind = form_kind_for(*row.shape, row.variant);
      if (kind == nullptr || !is_wanted(options.families, row.family)) return;
      const std::string name(row.device);
      if (!devices.contains(name)) devices.emplace(name, hardware.device(name));
      const Device& device = devices.at(name);
      if (!traits_of(device).complete) return;
      const bool is_withheld = std::find(withheld.begin(), withheld.end(), generation_of(device)) != withheld.end();
      if (is_withheld && options.sweep_size == 0) return;
      over_expected[{device.name, std::string(row.family)}].push_back(row.measured_us * 1e-6 /
                                                                      (row.predicted.seconds.value + launch_seconds));
      MeasuredDevice& measured = rows[kind][device.name];
      if (measured.rows.empty()) measured.device = device;
      measured.withheld = is_withheld;
      const FormCall call{.shape = *row.shape, .variant = std::string(row.variant)};
      if (std::holds_alternative<MoeShape>(*row.shape) && streams_weights(row.predicted)) {
        streaming[{kind, device.name}][call_group(call)].push_back(row.predicted.memory.value() /
                                                                   (row.measured_us * 1e-6));
      }
      measured.rows.push_back({.call = call, .seconds = row.measured_us * 1e-6});
    });
  }
  for (const auto& [key, efficiency] : streaming) mark_pathological(efficiency, rows[key.first][key.second]);
  for (const auto& [key, ratios] : over_expected) check_units(key.first, key.second, ratios);
  return rows;
}

}  // namespace

CalibrationSummary fit_calibrations(const std::vector<KernelValidationRequest>& requests,
                                    const HardwareCatalogue& hardware, const FitOptions& options, bool measured_tiers,
                                    const std::filesystem::path& folder) {
  CalibrationSummary summary;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const RowsByForm collected = collect(requests, hardware, options);
  for (const FormKind& kind : form_kinds()) {
    const auto found = collected.find(&kind);
    if (found == collected.end()) continue;
    std::vector<MeasuredDevice> devices, known;
    for (const auto& [name, measured] : found->second) {
      devices.push_back(measured);
      if (!measured.withheld) known.push_back(measured);
    }
    if (known.empty()) continue;
    const FormCalibration cross = fit_form(kind, known, options);
    write_file(form_calibration_path(folder, kind.name), calibration_json(cross));
    ++summary.files;
    for (const MeasuredDevice& device : devices) {
      const auto withheld = cross.withheld_mape.find(device.device.name);
      CalibrationSummary::Entry entry{.form = std::string(kind.name),
                                      .device = device.device.name,
                                      .rows = device.rows.size(),
                                      .withheld_mape = withheld == cross.withheld_mape.end() ? 0 : withheld->second};
      constexpr size_t fewest_rows = 50;
      if (measured_tiers && device.rows.size() >= fewest_rows) {
        const DeviceCalibration measured = fit_device(kind, cross, device, options);
        const auto path = device_calibration_path(folder, device.device.name, kind.name);
        std::filesystem::create_directories(path.parent_path(), error);
        write_file(path, calibration_json(measured));
        ++summary.files;
        entry.held_out_mape = measured.held_out_mape;
      }
      summary.entries.push_back(std::move(entry));
    }
  }
  return summary;
}

}  // namespace foretoken
