#include "kernel/fit/fit_calibrations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/statistics.h"
#include "kernel/fit/fit_device.h"
#include "kernel/fit/fit_form.h"
#include "kernel/forms/call.h"

namespace foretoken {
namespace {

// Rows by form and device.
using RowsByForm = std::map<const FormKind*, std::map<std::string, MeasuredDevice>>;

// What a launch costs on any GPU, about: small calls take that long whatever the roofline says.
constexpr double launch_seconds = 5e-6;

// A measured time against what is expected of the call: roofline and launch together.
struct PlausibilityOfRow {
  double over_expected = 0;
  size_t file = 0, row = 0;  // which file, by number; row as in ScoredKernel
};

// Over roofline and launch, the medians of 53 real sweeps lie between 0.3 and 5; single kernels that use a hundredth of
// the device are real (latent attention on A100), such that beat physics are not.
constexpr double too_fast = 0.02, too_slow = 100, too_slow_for_a_row = 2000;

// A sweep, or part of one, in the wrong unit: rows that would beat physics, or crawl. One alone may be a broken kernel.
void check_units(const std::string& device, std::string_view family, const std::vector<PlausibilityOfRow>& rows,
                 const std::vector<std::string>& files) {
  constexpr size_t enough = 20, named = 8;
  constexpr double tolerated_share = 0.02;
  std::vector<double> all;
  for (const PlausibilityOfRow& row : rows) all.push_back(row.over_expected);
  const double slowest = !all.empty() && quantile(all, 0.5) > too_slow ? too_slow : too_slow_for_a_row;
  std::vector<PlausibilityOfRow> suspicious;
  for (const PlausibilityOfRow& row : rows) {
    if (!(row.over_expected > too_fast && row.over_expected < slowest)) suspicious.push_back(row);
  }
  if (rows.size() < enough ||
      static_cast<double>(suspicious.size()) < tolerated_share * static_cast<double>(rows.size()))
    return;
  std::string places;
  for (size_t i = 0; i < std::min(named, suspicious.size()); ++i) {
    const bool same_file = i > 0 && suspicious[i].file == suspicious[i - 1].file;
    places += same_file ? fmt::format(", {}", suspicious[i].row)
                        : fmt::format("{}{} rows {}", i > 0 ? "; " : "", files[suspicious[i].file], suspicious[i].row);
  }
  if (suspicious.size() > named) places += ", ...";
  std::vector<double> ratios;
  for (const PlausibilityOfRow& row : suspicious) ratios.push_back(row.over_expected);
  throw InputError({.source = fmt::format("measurements of {} on {}", family, device),
                    .path = "latency_us",
                    .value = fmt::format("{} of {} rows, typically {:.3g} times the roofline plus a launch: {}",
                                         suspicious.size(), rows.size(), quantile(ratios, 0.5), places),
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
                   const FitOptions& options, Sweeps sweeps) {
  std::vector<std::string> withheld;
  for (const std::string& name : options.without) withheld.push_back(generation_named(name, hardware));
  std::vector<std::string> withheld_devices;
  for (const std::string& name : options.without_devices) withheld_devices.push_back(hardware.device(name).name);
  const bool is_partial = options.sweep_size > 0 || options.probe_rows > 0;
  const bool sweeps_withheld = sweeps == Sweeps::withheld || (sweeps == Sweeps::all && is_partial);
  RowsByForm rows;
  std::map<std::pair<std::string, std::string>, std::vector<PlausibilityOfRow>> plausibility;
  std::vector<std::string> files;
  std::map<std::string, Device> devices;
  std::map<std::pair<const FormKind*, std::string>, StreamingEfficiency> streaming;
  std::map<std::pair<const FormKind*, std::string>, OverDram> over_dram;
  for (const KernelValidationRequest& request : requests) {
    const auto roofline_only = [](const Device& device, Caches /*caches*/) { return KernelPredictor(device); };
    validate_kernels(request, hardware, roofline_only, [&](const ScoredKernel& row) {
      if (is_unequal_decode(*row.shape) || row.copied > 0) return;
      const std::string_view family = form_family(*row.shape, row.variant);
      const std::string name(row.device);
      if (!devices.contains(name)) devices.emplace(name, hardware.device(name));
      const Device& device = devices.at(name);
      const TraitsOfDevice traits = traits_of(device);
      const FormKind* own =
          is_wanted(options.families, row.family) ? form_kind_for(*row.shape, row.variant, traits.traits.amd) : nullptr;
      const std::vector<const FormKind*> borrowers = borrowers_of(family, options.families);
      if (own == nullptr && borrowers.empty()) return;
      if (!traits.complete) return;
      const auto names = [](const std::vector<std::string>& list, const std::string& one) {
        return std::find(list.begin(), list.end(), one) != list.end();
      };
      const bool is_withheld = names(withheld, generation_of(device)) || names(withheld_devices, device.name);
      if (is_withheld && (!sweeps_withheld || is_held_out(row.device, row.family, row.row))) return;
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
      if (files.empty() || files.back() != row.file) files.emplace_back(row.file);
      plausibility[{device.name, std::string(row.family)}].push_back(
          {.over_expected = row.measured_us * 1e-6 / (row.predicted.seconds.value + launch_seconds),
           .file = files.size() - 1,
           .row = row.row});
      if (std::holds_alternative<MoeShape>(*row.shape) && streams_weights(row.predicted)) {
        streaming[{own, device.name}][call_group(call)].push_back(row.predicted.memory.value() /
                                                                  (row.measured_us * 1e-6));
      }
      if (row.predicted.work.bytes().value() > 2 * traits.traits.cache) {
        over_dram[{own, device.name}][call_group(call)].push_back(row.predicted.memory.value() /
                                                                  (row.measured_us * 1e-6));
      }
      measured_device(own).rows.push_back({.call = call, .seconds = row.measured_us * 1e-6});
    });
  }
  for (const auto& [key, efficiency] : streaming) mark_pathological(efficiency, rows[key.first][key.second]);
  for (const auto& [key, ratios] : over_dram) mark_impossible(ratios, rows[key.first][key.second]);
  for (const auto& [key, judged] : plausibility) check_units(key.first, key.second, judged, files);
  return rows;
}

constexpr size_t fewest_swept_rows = 50;   // of a form on a device, for a measured tier
constexpr size_t fewest_probed_rows = 20;  // the same for a probe

// Into its file; the entry gets the errors.
DeviceCalibration fit_and_write(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& device,
                                const FitOptions& options, const std::filesystem::path& folder,
                                CalibrationSummary::Entry& entry) {
  DeviceCalibration measured = fit_device(kind, cross, device, options);
  const auto path = device_calibration_path(folder, device.device.name, kind.name);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  write_file(path, calibration_json(measured));
  entry.held_out_mape = measured.held_out_mape;
  entry.held_out_mape_20us = measured.held_out_mape_20us;
  entry.held_out_coverage = measured.held_out_coverage;
  return measured;
}

// Takes what is held out of a device's rows: a random fifth of them, or those of a random fifth of its layers.
std::vector<MeasuredCall> take_held_out(const FormKind& kind, MeasuredDevice& measured, const FitOptions& options) {
  constexpr size_t fifth = 5;
  if (options.hold_out == HoldOut::nothing) return {};
  RandomStream random(options.seed, fmt::format("held out {} {}", kind.name, measured.device.name));
  std::map<std::string, bool> layers;
  if (options.hold_out == HoldOut::layers) {
    for (const MeasuredCall& row : measured.rows) layers.emplace(call_layer(row.call), false);
    for (auto& [layer, held] : layers) held = random.below(fifth) == 0;
  }
  std::vector<MeasuredCall> held_out, kept;
  for (MeasuredCall& row : measured.rows) {
    const bool held = options.hold_out == HoldOut::layers ? layers.at(call_layer(row.call)) : random.below(fifth) == 0;
    (held ? held_out : kept).push_back(std::move(row));
  }
  measured.rows = std::move(kept);
  return held_out;
}

// The sweep that the folder already has of a device; nothing where there is none.
std::optional<DeviceCalibration> kept_sweep(const std::filesystem::path& folder, const std::string& device,
                                            const FormKind& kind) {
  const auto path = device_calibration_path(folder, device, kind.name);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return read_device_calibration(path);
}

double value_or_zero(const std::map<std::string, double>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? 0 : found->second;
}

}  // namespace

std::string generation_named(const std::string& name, const HardwareCatalogue& hardware) {
  std::vector<std::string> names;
  for (const GpuGeneration& generation : gpu_generations()) {
    for (const std::string_view known : {generation.title, generation.instruction_set}) {
      if (comparable_name(known) == comparable_name(name)) return std::string(generation.key);
      names.emplace_back(known);
    }
  }
  try {
    return generation_of(hardware.device(name));
  } catch (const InputError&) {
    const std::string generations = fmt::format("{}", fmt::join(names, ", "));
    names.insert(names.end(), hardware.device_names().begin(), hardware.device_names().end());
    throw InputError({.field = "without",
                      .value = printable(name),
                      .expected = "a device, or a generation: " + generations,
                      .suggestion = nearest_name(name, names).value_or("")});
  }
}

CalibrationSummary fit_calibrations(const std::vector<KernelValidationRequest>& requests,
                                    const HardwareCatalogue& hardware, const FitOptions& options, Sweeps sweeps,
                                    const std::filesystem::path& folder) {
  CalibrationSummary summary;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  RowsByForm collected = collect(requests, hardware, options, sweeps);
  std::set<std::string> sweep_devices;
  for (const std::string& name : options.sweep_devices) sweep_devices.insert(hardware.device(name).name);
  for (const FormKind& kind : form_kinds()) {
    const auto found = collected.find(&kind);
    if (found == collected.end()) continue;
    std::vector<MeasuredDevice> devices, known;
    std::map<std::string, std::vector<MeasuredCall>> held_out;
    for (auto& [name, measured] : found->second) {
      held_out[name] = take_held_out(kind, measured, options);
      devices.push_back(measured);
      if (!measured.withheld) known.push_back(measured);
    }
    const bool any_of_its_own =
        std::any_of(known.begin(), known.end(), [](const MeasuredDevice& device) { return !device.rows.empty(); });
    if (!any_of_its_own) continue;
    FormCalibration cross = fit_form(kind, known, options);
    std::map<std::string, DeviceCalibration> swept;
    for (const MeasuredDevice& device : devices) {
      if (device.rows.empty()) continue;
      CalibrationSummary::Entry entry{
          .form = std::string(kind.name),
          .device = device.device.name,
          .rows = device.rows.size(),
          .withheld_mape = value_or_zero(cross.withheld_mape, device.device.name),
          .withheld_mape_20us = value_or_zero(cross.withheld_mape_20us, device.device.name),
          .withheld_coverage = value_or_zero(cross.withheld_coverage, generation_of(device.device))};
      const size_t fewest_rows = options.probe_rows > 0 ? fewest_probed_rows : fewest_swept_rows;
      const bool is_asked = sweep_devices.empty() || sweep_devices.contains(device.device.name);
      const bool is_swept = is_asked && (sweeps == Sweeps::all || (sweeps == Sweeps::withheld && device.withheld));
      if (is_swept && device.rows.size() >= fewest_rows) {
        swept.emplace(device.device.name, fit_and_write(kind, cross, device, options, folder, entry));
        ++summary.files;
        for (const auto& [group, unseen] :
             errors_of_sweep(kind, swept.at(device.device.name), device.device, held_out[device.device.name])) {
          const auto rows = static_cast<double>(unseen.errors.size());
          summary.held_out.push_back({.form = std::string(kind.name),
                                      .device = device.device.name,
                                      .group = group,
                                      .rows = unseen.errors.size(),
                                      .mape = mean_percentage_error(unseen.errors),
                                      .coverage = 100 * static_cast<double>(unseen.inside) / rows});
        }
      } else if (!is_swept && !device.withheld) {
        if (auto kept = kept_sweep(folder, device.device.name, kind)) {
          if (rebase_sweep(kind, cross, device, *kept)) {
            write_file(device_calibration_path(folder, device.device.name, kind.name), calibration_json(*kept));
            ++summary.files;
          }
          swept.emplace(device.device.name, *std::move(kept));
        }
      }
      summary.entries.push_back(std::move(entry));
    }
    cross.sibling_half_widths = sibling_half_widths(kind, devices, swept);
    write_file(form_calibration_path(folder, kind.name), calibration_json(cross));
    ++summary.files;
  }
  return summary;
}

CalibrationSummary fit_sweeps(const KernelValidationRequest& request, const HardwareCatalogue& hardware,
                              const FitOptions& options, const CalibrationFolder& cross,
                              const std::filesystem::path& folder) {
  CalibrationSummary summary;
  const RowsByForm collected = collect({request}, hardware, options, Sweeps::all);
  for (const FormKind& kind : form_kinds()) {
    const auto found = collected.find(&kind);
    if (found == collected.end()) continue;
    const std::optional<FormCalibration> ports = cross.form(kind.name);
    for (const auto& [name, device] : found->second) {
      if (!ports || device.rows.size() < fewest_swept_rows) continue;
      CalibrationSummary::Entry entry{
          .form = std::string(kind.name), .device = device.device.name, .rows = device.rows.size()};
      fit_and_write(kind, *ports, device, options, folder, entry);
      ++summary.files;
      summary.entries.push_back(std::move(entry));
    }
  }
  return summary;
}

}  // namespace foretoken
