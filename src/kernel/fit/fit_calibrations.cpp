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

// Rows whose data cannot be in the cache; their DRAM time over the measured one, by call group.
using OverDram = std::map<std::string, std::vector<double>>;

// Where every group is too fast, the spec sheet or the unit may be at fault instead: check_units decides.
void mark_impossible(const OverDram& over_dram, MeasuredDevice& measured) {
  constexpr double beyond_doubt = 1.3;
  std::set<std::string> groups;
  for (const MeasuredCall& row : measured.rows) groups.insert(call_group(row.call));
  for (const auto& [group, ratios] : over_dram) {
    if (quantile(ratios, 0.5) > beyond_doubt) measured.impossible_groups.insert(group);
  }
  if (measured.impossible_groups.size() == groups.size()) measured.impossible_groups.clear();
}

bool is_wanted(const std::vector<std::string>& wanted, std::string_view family) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), family) != wanted.end();
}

// Forms that learn from rows of this family besides their own.
std::vector<const FormKind*> borrowers_of(std::string_view family, const std::vector<std::string>& wanted) {
  std::vector<const FormKind*> borrowers;
  for (const FormKind& kind : form_kinds()) {
    const bool lends = std::find(kind.lenders.begin(), kind.lenders.end(), family) != kind.lenders.end();
    const bool asked = std::any_of(kind.families.begin(), kind.families.end(),
                                   [&](std::string_view name) { return is_wanted(wanted, name); });
    if (lends && asked) borrowers.push_back(&kind);
  }
  return borrowers;
}

// Predicted by a law on top of the equal batch, which has nothing to fit: such rows stay unseen.
bool is_unequal_decode(const KernelShape& shape) {
  const auto* mixed = std::get_if<MixedAttentionShape>(&shape);
  return mixed != nullptr && mixed->prompt_count() == 0;
}

RowsByForm collect(const std::vector<KernelValidationRequest>& requests, const HardwareCatalogue& hardware,
                   const FitOptions& options) {
  std::vector<std::string> withheld;
  for (const std::string& name : options.without) withheld.push_back(generation_of(hardware.device(name)));
  RowsByForm rows;
  std::map<std::pair<std::string, std::string>, std::vector<double>> over_expected;
  std::map<std::string, Device> devices;
  std::map<std::pair<const FormKind*, std::string>, StreamingEfficiency> streaming;
  std::map<std::pair<const FormKind*, std::string>, OverDram> over_dram;
  for (const KernelValidationRequest& request : requests) {
    const auto roofline_only = [](const Device& device, Caches /*caches*/) { return KernelPredictor(device); };
    validate_kernels(request, hardware, roofline_only, [&](const ScoredKernel& row) {
      if (is_unequal_decode(*row.shape)) return;
      const std::string_view family = form_family(*row.shape, row.variant);
      const FormKind* own = is_wanted(options.families, row.family) ? form_kind_for(*row.shape, row.variant) : nullptr;
      const std::vector<const FormKind*> borrowers = borrowers_of(family, options.families);
      if (own == nullptr && borrowers.empty()) return;
      const std::string name(row.device);
      if (!devices.contains(name)) devices.emplace(name, hardware.device(name));
      const Device& device = devices.at(name);
      if (!traits_of(device).complete) return;
      const bool is_withheld = std::find(withheld.begin(), withheld.end(), generation_of(device)) != withheld.end();
      if (is_withheld && options.sweep_size == 0) return;
      const auto measured_device = [&](const FormKind* kind) -> MeasuredDevice& {
        MeasuredDevice& measured = rows[kind][device.name];
        measured.device = device;
        measured.withheld = is_withheld;
        return measured;
      };
      const FormCall call{.shape = *row.shape, .variant = std::string(row.variant), .keys = row.caches};
      for (const FormKind* borrower : borrowers)
        measured_device(borrower).lent.push_back({.call = call, .seconds = row.measured_us * 1e-6});
      if (own == nullptr) return;
      over_expected[{device.name, std::string(row.family)}].push_back(row.measured_us * 1e-6 /
                                                                      (row.predicted.seconds.value + launch_seconds));
      if (std::holds_alternative<MoeShape>(*row.shape) && streams_weights(row.predicted)) {
        streaming[{own, device.name}][call_group(call)].push_back(row.predicted.memory.value() /
                                                                  (row.measured_us * 1e-6));
      }
      if (row.predicted.work.bytes().value() > 2 * traits_of(device).traits.cache) {
        over_dram[{own, device.name}][call_group(call)].push_back(row.predicted.memory.value() /
                                                                  (row.measured_us * 1e-6));
      }
      measured_device(own).rows.push_back({.call = call, .seconds = row.measured_us * 1e-6});
    });
  }
  for (const auto& [key, efficiency] : streaming) mark_pathological(efficiency, rows[key.first][key.second]);
  for (const auto& [key, ratios] : over_dram) mark_impossible(ratios, rows[key.first][key.second]);
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
    const bool any_of_its_own =
        std::any_of(known.begin(), known.end(), [](const MeasuredDevice& device) { return !device.rows.empty(); });
    if (!any_of_its_own) continue;
    const FormCalibration cross = fit_form(kind, known, options);
    write_file(form_calibration_path(folder, kind.name), calibration_json(cross));
    ++summary.files;
    for (const MeasuredDevice& device : devices) {
      if (device.rows.empty()) continue;
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
