#include "kernel/validate.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/random.h"
#include "hardware/generation.h"
#include "kernel/forms/eager_form.h"
#include "kernel/forms/list.h"
#include "kernel/measurement_files.h"
#include "kernel/measurement_rows.h"
#include "kernel/variants.h"

namespace foretoken {
namespace {

// Of one device: for calls that find their data where the last one left them, and for cold caches.
struct Predictors {
  KernelPredictor warm, cold;
  const KernelPredictor& with(Caches caches) const { return caches == Caches::cold ? cold : warm; }
};
using PredictorByDevice = std::map<std::string, Predictors, std::less<>>;

struct FileResult {
  std::map<std::string, std::vector<PredictedRow>, std::less<>> groups;
  std::vector<SkippedRows> skipped;
  std::vector<std::string> columns;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> variants;  // names of kernels by family
  size_t rows = 0;
  double seconds = 0;
  std::exception_ptr failure;
};

// Names a row's group: a column's text, or its device and family.
struct Grouping {
  std::optional<size_t> column;  // of the file
  std::string fixed;             // for all rows; empty: by the row's family
  std::map<std::string_view, std::string> by_family;
  std::string_view name(const MeasurementFile& file, std::string_view family, const CsvReader& csv) {
    if (column) return csv.cell(*column);
    if (!fixed.empty()) return fixed;
    const auto [found, is_new] = by_family.try_emplace(family);
    if (is_new) found->second = fmt::format("{}/{}", file.device, family);
    return found->second;
  }
};

Grouping grouping(const std::string& group_by, const MeasurementFile& file, const CsvReader& csv) {
  if (group_by.empty()) return {};
  if (group_by == "device") return {.fixed = file.device};
  return {.column = csv.find_column(group_by), .fixed = fmt::format("(no {})", group_by)};
}

bool is_listed(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& candidate) { return comparable_name(candidate) == comparable_name(name); });
}

// Rows that --where asks for.
class Conditions {
 public:
  Conditions(const std::vector<std::string>& where, const CsvReader& csv) {
    for (const std::string& condition : where) {
      const size_t equals = condition.find('=');
      if (equals == std::string::npos || equals == 0) {
        throw InputError({.field = "where", .value = printable(condition), .expected = "COLUMN=VALUE"});
      }
      const std::optional<size_t> column = csv.find_column(condition.substr(0, equals));
      if (!column) never_ = true;
      if (column) cells_.emplace_back(*column, condition.substr(equals + 1));
    }
  }
  bool hold(const CsvReader& csv) const {
    return !never_ && std::all_of(cells_.begin(), cells_.end(),
                                  [&](const auto& cell) { return csv.cell(cell.first) == cell.second; });
  }

 private:
  std::vector<std::pair<size_t, std::string>> cells_;
  bool never_ = false;  // the file lacks a column
};

// Of the kernel that the row names, with what was timed beside it.
KernelEstimate estimate_of_row(const TableRow& row, const std::string& device, const Predictors& predictors,
                               const Campaign& campaign) {
  const KernelPredictor& predictor = predictors.with(row.caches);
  const auto effect = campaign.effects.find({device, std::string(row.variant)});
  const bool is_known = effect != campaign.effects.end();
  KernelEstimate predicted = predictor.estimate(row.shape, is_known ? framework_kernel : row.variant);
  if (is_known) predicted.seconds = campaign_estimate(effect->second, predicted.seconds);
  if (row.copied > 0) {
    const ElementwiseShape copy{.elements = row.copied, .dtype = DType::fp32};
    const Estimate before = predictor.estimate(copy, framework_kernel).seconds;
    predicted.seconds = sum_of_correlated(std::array{before, predicted.seconds});
  }
  return predicted;
}

// Why a time cannot have been measured; empty if it can.
std::string_view misfit_of_time(const TableRow& row, const KernelEstimate& predicted) {
  constexpr double over_peak = 1.08;  // clocks that boost
  const double at_peak = predicted.compute.value() * predicted.wave_efficiency;
  if (row.tuned && row.microseconds * 1e-6 * over_peak < at_peak) {
    return "latency_us is below the time of the multiplies at peak: a broken trial won the tuning";
  }
  return row.microseconds <= 0 ? "latency_us is not above zero" : "";
}

// The rows of one file.
class FileScorer {
 public:
  FileScorer(const MeasurementFile& file, const Predictors& predictors, const KernelValidationRequest& request,
             const ScoredKernelSink& sink, FileResult& result)
      : file_(file),
        predictors_(predictors),
        request_(request),
        sink_(sink),
        result_(result),
        source_(open_rows(file, request.models)),
        csv_(source_->csv()),
        group_(grouping(request.group_by, file, csv_)),
        conditions_(request.where, csv_),
        path_(file.path.string()) {
    result.columns = csv_.columns();
  }

  void score() {
    std::string why;
    while (source_->next()) {
      if (!conditions_.hold(csv_)) continue;
      const std::optional<TableRow> row = source_->read(why);
      if (row) {
        score_row(*row);
      } else {
        skip(why);
      }
    }
  }

 private:
  void skip(std::string reason) {
    result_.skipped.push_back({.file = path_, .row = csv_.row(), .why = std::move(reason)});
  }

  void score_row(const TableRow& row) {
    const std::string_view family = file_.family ? std::string_view(file_.family->name) : family_name(row.shape);
    // A file of one family was kept or left out as a whole.
    if (!file_.family && !request_.families.empty() && !is_listed(request_.families, family)) return;
    if (request_.held_out_only && !is_held_out(file_.device, family, csv_.row())) return;
    KernelEstimate predicted;
    try {
      predicted = estimate_of_row(row, file_.device, predictors_, request_.campaign);
    } catch (const InputError& error) {
      return skip(
          fmt::format("{} cannot be predicted on this device: {}", error.problem().value, error.problem().expected));
    }
    if (!row.variant.empty() && !request_.calibrations.empty()) {
      auto& names = result_.variants[std::string(family)];
      if (!names.contains(row.variant)) names.emplace(row.variant);
    }
    if (const std::string_view why = misfit_of_time(row, predicted); !why.empty()) return skip(std::string(why));
    add(row, family, predicted);
  }

  void add(const TableRow& row, std::string_view family, const KernelEstimate& predicted) {
    const std::string_view name = request_.group_by == "family" ? family : group_.name(file_, family, csv_);
    if (!rows_ || rows_name_ != name) {
      rows_name_ = name;
      rows_ = &result_.groups[rows_name_];
    }
    rows_->push_back({.measured = row.microseconds,
                      .predicted = predicted.seconds.value * 1e6,
                      .low = predicted.seconds.low * 1e6,
                      .high = predicted.seconds.high * 1e6});
    ++result_.rows;
    if (!sink_) return;
    sink_({.file = path_,
           .device = file_.device,
           .family = family,
           .group = name,
           .row = csv_.row(),
           .shape = &row.shape,
           .variant = row.variant,
           .copied = row.copied,
           .measured_us = row.microseconds,
           .caches = row.caches,
           .predicted = predicted});
  }

  const MeasurementFile& file_;
  const Predictors& predictors_;
  const KernelValidationRequest& request_;
  const ScoredKernelSink& sink_;
  FileResult& result_;
  std::unique_ptr<MeasurementRows> source_;
  const CsvReader& csv_;
  Grouping group_;
  Conditions conditions_;
  std::string path_;
  std::string rows_name_;  // group of the row before
  std::vector<PredictedRow>* rows_ = nullptr;
};

void keep_only(std::vector<MeasurementFile>& files, const std::vector<std::string>& wanted, const std::string& field,
               const std::function<std::string(const MeasurementFile&)>& name_of) {
  if (wanted.empty()) return;
  std::vector<std::string> present;
  present.reserve(files.size());
  for (const MeasurementFile& file : files) present.push_back(name_of(file));
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  for (const std::string& name : wanted) {
    if (is_listed(present, name)) continue;
    throw InputError({.field = field,
                      .value = printable(name),
                      .expected = fmt::format("one that the data holds: {}", fmt::join(present, ", ")),
                      .suggestion = nearest_name(name, present).value_or("")});
  }
  std::erase_if(files, [&](const MeasurementFile& file) { return !is_listed(wanted, name_of(file)); });
}

void keep_generation(std::vector<MeasurementFile>& files, const KernelValidationRequest& request,
                     const HardwareCatalogue& hardware) {
  if (request.generation.empty()) return;
  std::map<std::string, bool> is_kept;
  for (const MeasurementFile& file : files) {
    const auto [kept, is_new] = is_kept.try_emplace(file.device, false);
    if (!is_new) continue;
    try {
      kept->second = generation_of(hardware.find_device(file.device)) == request.generation;
    } catch (const InputError&) {
      // A device that nobody knows is of no known generation.
    }
  }
  std::erase_if(files, [&](const MeasurementFile& file) { return !is_kept.at(file.device); });
  if (files.empty()) {
    throw InputError({.field = "without",
                      .value = printable(request.generation),
                      .expected = fmt::format("a generation with measurements in {}", request.data.string())});
  }
}

// One predictor per device that the catalogue knows; the others' files are skipped with the reason.
PredictorByDevice make_predictors(const std::vector<MeasurementFile>& files, const HardwareCatalogue& hardware,
                                  const PredictorMaker& make_predictor, std::map<std::string, std::string>& reasons) {
  PredictorByDevice predictors;
  for (const MeasurementFile& file : files) {
    if (predictors.contains(file.device) || reasons.contains(file.device)) continue;
    try {
      const Device device = hardware.find_device(file.device);
      predictors.emplace(file.device, Predictors{.warm = make_predictor(device, Caches::benchmark),
                                                 .cold = make_predictor(device, Caches::cold)});
    } catch (const InputError& error) {
      const InputProblem& problem = error.problem();
      reasons[file.device] =
          fmt::format("device {}: expected {}{}", file.device, problem.expected,
                      problem.suggestion.empty() ? "" : "; did you mean " + problem.suggestion + "?");
    }
  }
  return predictors;
}

// Tables spell devices in their own way: the catalogue's name where it knows them.
void use_catalogue_names(std::vector<MeasurementFile>& files, const HardwareCatalogue& hardware) {
  std::map<std::string, std::string> names;
  for (MeasurementFile& file : files) {
    if (!file.table) continue;
    const auto [name, is_new] = names.try_emplace(file.device_text, file.device_text);
    if (is_new) {
      try {
        name->second = hardware.device(file.device_text).name;
      } catch (const InputError&) {
        // Left as it is: the reason is reported with its rows.
      }
    }
    file.device = name->second;
  }
}

// A column that a field names must be one of `columns` or in some file.
void check_column(const std::string& field, const std::string& column, std::vector<std::string> columns,
                  const std::vector<FileResult>& results) {
  for (const FileResult& result : results) columns.insert(columns.end(), result.columns.begin(), result.columns.end());
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  if (std::find(columns.begin(), columns.end(), column) != columns.end()) return;
  throw InputError({.field = field,
                    .value = printable(column),
                    .expected = fmt::format("a column of the data: {}", fmt::join(columns, ", ")),
                    .suggestion = nearest_name(column, columns).value_or("")});
}

// Names that say nothing to a form or a sweep: what such rows were priced as.
void note_unknown_kernels(const std::vector<FileResult>& results, const std::filesystem::path& calibrations,
                          std::vector<std::string>& notes) {
  std::map<std::string, std::set<std::string>> variants;
  for (const FileResult& result : results) {
    for (const auto& [family, names] : result.variants) variants[family].insert(names.begin(), names.end());
  }
  for (const auto& [family, names] : variants) {
    const FormKind* form = form_kind_of(family);
    if (form == nullptr) continue;
    const std::unique_ptr<Form> own = form->make(Caches::benchmark);
    const std::vector<std::string_view> of_form = own->known_variants();
    if (of_form.empty()) continue;
    std::set<std::string> unknown;
    for (std::string name : names) {
      if (name.ends_with(cold_suffix)) name.resize(name.size() - cold_suffix.size());
      name = without_layout(name);
      const bool is_known =
          is_framework_kernel(name) || std::find(of_form.begin(), of_form.end(), name) != of_form.end();
      if (!is_known) unknown.insert(std::move(name));
    }
    if (unknown.empty()) continue;  // before any sweep is read
    for (const std::string& name : known_variants(kernel_family(family, {}), calibrations)) unknown.erase(name);
    if (unknown.empty()) continue;
    const bool writes_cache = family == "attention_prefill" || family == "attention_decode";
    notes.push_back(fmt::format(
        "{}: {}; such rows were priced as the kernel that engines usually run, with a wider interval{}", family,
        unknown.size() == 1 ? fmt::format("{} is not a known kernel", *unknown.begin())
                            : fmt::format("{} are not known kernels", fmt::join(unknown, ", ")),
        writes_cache ? ", with the write of new keys and values where writes_kv is not no" : ""));
  }
}

}  // namespace

bool is_held_out(std::string_view device, std::string_view family, size_t row) {
  constexpr uint64_t parts = 5;
  return RandomStream(row, fmt::format("held out {} {}", device, family)).below(parts) == 0;
}

Validation validate_kernels(const KernelValidationRequest& request, const HardwareCatalogue& hardware,
                            const PredictorMaker& make_predictor, const ScoredKernelSink& sink) {
  MeasurementFiles found = find_measurement_files(request.data);
  for (const std::string& family : request.families) kernel_family(family, {.field = "families"});
  use_catalogue_names(found.files, hardware);
  keep_only(found.files, request.devices, "devices", [](const MeasurementFile& file) { return file.device; });
  keep_generation(found.files, request, hardware);
  // A table of operators has an entry for each of its families, and one without for what is no kernel.
  const bool one_family_each = std::all_of(found.files.begin(), found.files.end(), [](const MeasurementFile& file) {
    return file.family != nullptr || file.table.has_value();
  });
  if (one_family_each) {
    keep_only(found.files, request.families, "families",
              [](const MeasurementFile& file) { return file.family ? file.family->name : std::string(); });
  }

  std::map<std::string, std::string> unknown_devices;
  const PredictorByDevice predictors = make_predictors(found.files, hardware, make_predictor, unknown_devices);

  std::vector<FileResult> results(found.files.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < results.size(); i = next++) {
      const MeasurementFile& file = found.files[i];
      const auto predictor = predictors.find(file.device);
      if (predictor == predictors.end()) {
        results[i].skipped.push_back({.file = file.path.string(), .why = unknown_devices.at(file.device)});
        continue;
      }
      const auto start = std::chrono::steady_clock::now();
      try {
        FileScorer(file, predictor->second, request, sink, results[i]).score();
      } catch (...) {
        results[i].failure = std::current_exception();
      }
      results[i].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t wanted = sink ? 1 : request.threads > 0 ? static_cast<size_t>(request.threads) : cores;
  run_on_threads(static_cast<unsigned>(std::max<size_t>(1, std::min(wanted, results.size()))), work);
  for (const FileResult& result : results) {
    if (result.failure) std::rethrow_exception(result.failure);
  }
  if (!request.group_by.empty()) check_column("group_by", request.group_by, {"device", "family"}, results);
  for (const std::string& condition : request.where) {
    check_column("where", condition.substr(0, condition.find('=')), {}, results);
  }

  Validation validation{.notes = std::move(found.notes)};
  for (const LeftOutFile& file : found.left_out)
    validation.skipped.push_back({.file = file.path.string(), .why = file.why});
  ValidationTally tally(long_row_us);
  for (FileResult& result : results) {
    for (auto& [name, rows] : result.groups) {
      for (const PredictedRow& row : rows) tally.add(name, row, result.seconds / static_cast<double>(result.rows));
      rows = {};
    }
    validation.skipped.insert(validation.skipped.end(), std::make_move_iterator(result.skipped.begin()),
                              std::make_move_iterator(result.skipped.end()));
  }
  tally.write(validation);
  if (!request.calibrations.empty()) note_unknown_kernels(results, request.calibrations, validation.notes);
  return validation;
}

namespace {

// Every row with its bare roofline. Names of devices last as long as `devices`.
void for_each_roofline(const std::vector<KernelValidationRequest>& requests, const HardwareCatalogue& hardware,
                       std::map<std::string, size_t, std::less<>>& devices,
                       const std::function<void(std::string_view device, const ScoredKernel&)>& take) {
  const auto roofline_only = [](const Device& device, Caches /*caches*/) { return KernelPredictor(device); };
  for (const KernelValidationRequest& request : requests) {
    validate_kernels(request, hardware, roofline_only, [&](const ScoredKernel& row) {
      const auto device = devices.try_emplace(std::string(row.device)).first;
      ++device->second;
      take(device->first, row);
    });
  }
}

}  // namespace

RooflineIntervals fit_roofline_intervals(const std::vector<KernelValidationRequest>& requests,
                                         const HardwareCatalogue& hardware) {
  std::map<std::string, std::vector<RooflineSample>, std::less<>> samples;
  std::map<std::string, size_t, std::less<>> devices;
  for_each_roofline(requests, hardware, devices, [&](std::string_view device, const ScoredKernel& row) {
    samples[std::string(row.family)].push_back({.device = device,
                                                .measured_seconds = row.measured_us * 1e-6,
                                                .roofline_seconds = row.predicted.seconds.value});
  });
  RooflineIntervals intervals;
  for (const auto& [device, rows] : devices) intervals.devices.push_back(device);
  for (const auto& [family, rows] : samples) intervals.families.emplace(family, fit_family_intervals(rows));
  intervals.other = widest_intervals(intervals.families);
  return intervals;
}

SheetDerates fit_sheet_derates(const std::vector<KernelValidationRequest>& requests,
                               const HardwareCatalogue& hardware) {
  std::map<std::string, std::vector<DerateSample>, std::less<>> samples;
  std::map<std::string, size_t, std::less<>> devices;
  std::map<std::string, std::string, std::less<>> vendors;
  for_each_roofline(requests, hardware, devices, [&](std::string_view device, const ScoredKernel& row) {
    auto vendor = vendors.find(device);
    if (vendor == vendors.end()) {
      vendor = vendors.emplace(device, hardware.find_device(std::string(device)).vendor).first;
    }
    samples[derate_group(*row.shape)].push_back({.device = device,
                                                 .vendor = vendor->second,
                                                 .measured_seconds = row.measured_us * 1e-6,
                                                 .compute_seconds = row.predicted.compute.value(),
                                                 .memory_seconds = row.predicted.memory.value()});
  });
  SheetDerates derates;
  for (const auto& [device, rows] : devices) derates.devices.push_back(device);
  for (const auto& [family, rows] : samples) derates.families.emplace(family, fit_family_derates(rows));
  complete_derates(derates);
  return derates;
}

}  // namespace foretoken
