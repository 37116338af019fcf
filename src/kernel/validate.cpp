#include "kernel/validate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/forms/eager_form.h"
#include "kernel/measurement_files.h"
#include "kernel/operator_table.h"

namespace foretoken {
namespace {

using PredictorByDevice = std::map<std::string, std::unique_ptr<KernelPredictor>, std::less<>>;

struct FileResult {
  std::map<std::string, std::vector<PredictedRow>, std::less<>> groups;
  std::vector<SkippedRows> skipped;
  std::vector<std::string> columns;
  size_t rows = 0;
  double seconds = 0;
  std::exception_ptr failure;
};

// Why a row that reads well is no measurement of its family; empty if it is one.
std::string_view not_a_kernel(const KernelFamily& family, std::string_view op) {
  if (family.name == "quantize_fp8" && op == "dyn_minus_static") return "a difference of two timings, not a kernel";
  return {};
}

// Names a row's group: a column's text, or what the file says.
struct Grouping {
  std::string fixed;             // used when there is no column
  std::optional<size_t> column;  // of the file
  std::string_view name(const CsvReader& csv) const { return column ? csv.cell(*column) : std::string_view(fixed); }
};

Grouping grouping(const std::string& group_by, const MeasurementFile& file, const CsvReader& csv) {
  const std::string family = file.family ? file.family->name : "";
  if (group_by.empty()) return {.fixed = fmt::format("{}/{}", file.device, family)};
  if (group_by == "device") return {.fixed = file.device};
  if (group_by == "family") return {.fixed = family};
  return {.fixed = fmt::format("(no {})", group_by), .column = csv.find_column(group_by)};
}

// Rows of one file that are asked for, one after the other, whatever its format.
class RowSource {
 public:
  RowSource(const MeasurementFile& file, const std::vector<std::string>& where) : file_(file), csv_(file.path) {
    if (file.table) {
      table_.emplace(*file.table, csv_);
    } else {
      family_.emplace(*file.family, csv_);
      measured_ = csv_.column("latency_us");
      op_ = csv_.find_column("op");
      variant_ = csv_.find_column("kernel");
    }
    for (const std::string& condition : where) {
      const size_t equals = condition.find('=');
      if (equals == std::string::npos || equals == 0) {
        throw InputError({.source = "--where", .value = printable(condition), .expected = "COLUMN=VALUE"});
      }
      const std::optional<size_t> column = csv_.find_column(condition.substr(0, equals));
      if (!column) is_left_out_ = true;
      if (column) conditions_.emplace_back(*column, condition.substr(equals + 1));
    }
  }

  const CsvReader& csv() const { return csv_; }

  bool next() {
    if (is_left_out_) return false;
    while (csv_.next()) {
      if (is_wanted()) return true;
    }
    return false;
  }

  // The shape of the current row; nothing, and the reason in `why`, where it cannot be expressed.
  std::optional<KernelShape> read(std::string& why) {
    if (!table_) {
      if (op_) {
        why = not_a_kernel(*file_.family, csv_.cell(*op_));
        if (!why.empty()) return std::nullopt;
      }
      return family_->read_if_expressible(csv_, why);
    }
    std::optional<OperatorRow> row = table_->read(csv_, why);
    if (!row) return std::nullopt;
    table_variant_ = std::move(row->variant);
    return row->shape;
  }

  // Of the row just read; valid until the next.
  std::string_view variant() const {
    if (table_) return table_variant_;
    return variant_ ? csv_.cell(*variant_) : std::string_view();
  }
  double measured_us() const { return table_ ? table_->measured_us(csv_) : csv_.number(measured_); }

 private:
  bool is_wanted() const {
    if (table_ && (table_->device(csv_) != file_.device_text || table_->family(csv_) != family_name())) return false;
    return std::all_of(conditions_.begin(), conditions_.end(),
                       [&](const auto& condition) { return csv_.cell(condition.first) == condition.second; });
  }
  std::string_view family_name() const { return file_.family ? std::string_view(file_.family->name) : ""; }

  const MeasurementFile& file_;
  CsvReader csv_;
  std::optional<KernelRowReader> family_;
  std::optional<OperatorRowReader> table_;
  size_t measured_ = 0;
  std::optional<size_t> op_, variant_;
  std::vector<std::pair<size_t, std::string>> conditions_;
  bool is_left_out_ = false;
  std::string table_variant_;
};

void score_file(const MeasurementFile& file, const KernelPredictor& predictor, const KernelValidationRequest& request,
                const ScoredKernelSink& sink, FileResult& result) {
  RowSource source(file, request.where);
  const CsvReader& csv = source.csv();
  result.columns = csv.columns();
  const Grouping group = grouping(request.group_by, file, csv);
  const std::string path = file.path.string();
  std::string why;
  const auto skip = [&](std::string reason) {
    result.skipped.push_back({.file = path, .row = csv.row(), .why = std::move(reason)});
  };
  std::string_view rows_name;
  std::vector<PredictedRow>* rows = nullptr;
  while (source.next()) {
    const std::optional<KernelShape> shape = source.read(why);
    if (!shape) {
      skip(why);
      continue;
    }
    KernelEstimate predicted;
    try {
      const auto effect = request.campaign.effects.find({file.device, std::string(source.variant())});
      const bool is_known = effect != request.campaign.effects.end();
      predicted = predictor.estimate(*shape, is_known ? framework_kernel : source.variant());
      if (is_known) predicted.seconds = campaign_estimate(effect->second, predicted.seconds);
    } catch (const InputError& error) {
      skip(fmt::format("{} cannot be predicted on this device: {}", error.problem().value, error.problem().expected));
      continue;
    }
    const double measured_us = source.measured_us();
    if (measured_us <= 0) {
      skip("latency_us is not above zero");
      continue;
    }
    const std::string_view name = group.name(csv);
    if (!rows || rows_name != name) {
      const auto found = result.groups.try_emplace(std::string(name)).first;
      rows_name = found->first;
      rows = &found->second;
    }
    rows->push_back({.measured = measured_us,
                     .predicted = predicted.seconds.value * 1e6,
                     .low = predicted.seconds.low * 1e6,
                     .high = predicted.seconds.high * 1e6});
    ++result.rows;
    if (sink) {
      sink({.file = path,
            .device = file.device,
            .family = file.family->name,
            .group = name,
            .row = csv.row(),
            .shape = &*shape,
            .variant = source.variant(),
            .measured_us = measured_us,
            .predicted = predicted});
    }
  }
}

void keep_only(std::vector<MeasurementFile>& files, const std::vector<std::string>& wanted, const std::string& flag,
               const std::function<std::string(const MeasurementFile&)>& name_of) {
  if (wanted.empty()) return;
  std::vector<std::string> present;
  present.reserve(files.size());
  for (const MeasurementFile& file : files) present.push_back(name_of(file));
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  for (const std::string& name : wanted) {
    const bool found = std::any_of(present.begin(), present.end(), [&](const std::string& candidate) {
      return comparable_name(candidate) == comparable_name(name);
    });
    if (found) continue;
    throw InputError({.source = flag,
                      .value = printable(name),
                      .expected = fmt::format("one that the data holds: {}", fmt::join(present, ", ")),
                      .suggestion = nearest_name(name, present).value_or("")});
  }
  std::erase_if(files, [&](const MeasurementFile& file) {
    return std::none_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
      return comparable_name(name) == comparable_name(name_of(file));
    });
  });
}

// One predictor per device that the catalogue knows; the others' files are skipped with the reason.
PredictorByDevice make_predictors(const std::vector<MeasurementFile>& files, const HardwareCatalogue& hardware,
                                  const PredictorMaker& make_predictor, std::map<std::string, std::string>& reasons) {
  PredictorByDevice predictors;
  for (const MeasurementFile& file : files) {
    if (predictors.contains(file.device) || reasons.contains(file.device)) continue;
    try {
      predictors.emplace(file.device, std::make_unique<KernelPredictor>(make_predictor(hardware.device(file.device))));
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

// A column to group by must be in some file.
void check_group_by(const std::string& group_by, const std::vector<FileResult>& results) {
  if (group_by.empty() || group_by == "device" || group_by == "family") return;
  std::vector<std::string> columns = {"device", "family"};
  for (const FileResult& result : results) columns.insert(columns.end(), result.columns.begin(), result.columns.end());
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  if (std::find(columns.begin(), columns.end(), group_by) != columns.end()) return;
  throw InputError({.source = "--group-by",
                    .value = printable(group_by),
                    .expected = fmt::format("a column of the data: {}", fmt::join(columns, ", ")),
                    .suggestion = nearest_name(group_by, columns).value_or("")});
}

double per_1000_rows(double seconds, double rows) {
  return rows > 0 ? 1000 * seconds / rows : 0;
}

}  // namespace

KernelValidation validate_kernels(const KernelValidationRequest& request, const HardwareCatalogue& hardware,
                                  const PredictorMaker& make_predictor, const ScoredKernelSink& sink) {
  MeasurementFiles found = find_measurement_files(request.data);
  for (const std::string& family : request.families) kernel_family(family, "--families");
  use_catalogue_names(found.files, hardware);
  keep_only(found.files, request.devices, "--devices", [](const MeasurementFile& file) { return file.device; });
  keep_only(found.files, request.families, "--families",
            [](const MeasurementFile& file) { return file.family ? file.family->name : std::string(); });

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
        score_file(file, *predictor->second, request, sink, results[i]);
      } catch (...) {
        results[i].failure = std::current_exception();
      }
      results[i].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t wanted = sink ? 1 : request.threads > 0 ? static_cast<size_t>(request.threads) : cores;
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < std::min(wanted, results.size()); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();  // joins
  for (const FileResult& result : results) {
    if (result.failure) std::rethrow_exception(result.failure);
  }
  check_group_by(request.group_by, results);

  KernelValidation validation{.notes = std::move(found.notes)};
  struct Gathered {
    std::vector<PredictedRow> rows;
    double seconds = 0;
  };
  std::map<std::string, Gathered> groups;
  std::vector<PredictedRow> all;
  double seconds = 0;
  for (FileResult& result : results) {
    seconds += result.seconds;
    for (auto& [name, rows] : result.groups) {
      Gathered& group = groups[name];
      group.seconds += result.seconds * static_cast<double>(rows.size()) / static_cast<double>(result.rows);
      group.rows.insert(group.rows.end(), rows.begin(), rows.end());
      all.insert(all.end(), rows.begin(), rows.end());
      rows = {};
    }
    validation.skipped.insert(validation.skipped.end(), std::make_move_iterator(result.skipped.begin()),
                              std::make_move_iterator(result.skipped.end()));
  }
  validation.overall = summarize_errors(all);
  validation.seconds_per_1000_rows = per_1000_rows(seconds, static_cast<double>(all.size()));
  for (const auto& [name, group] : groups) {
    validation.groups.push_back(
        {.name = name,
         .errors = summarize_errors(group.rows),
         .seconds_per_1000_rows = per_1000_rows(group.seconds, static_cast<double>(group.rows.size()))});
  }
  return validation;
}

RooflineIntervals fit_roofline_intervals(const std::vector<KernelValidationRequest>& requests,
                                         const HardwareCatalogue& hardware) {
  std::map<std::string, std::vector<RooflineSample>, std::less<>> samples;
  std::map<std::string, size_t, std::less<>> devices;
  const auto roofline_only = [](const Device& device) { return KernelPredictor(device); };
  for (const KernelValidationRequest& request : requests) {
    validate_kernels(request, hardware, roofline_only, [&](const ScoredKernel& row) {
      const auto device = devices.try_emplace(std::string(row.device)).first;
      ++device->second;
      samples[std::string(row.family)].push_back({.device = device->first,
                                                  .measured_seconds = row.measured_us * 1e-6,
                                                  .roofline_seconds = row.predicted.seconds.value});
    });
  }
  RooflineIntervals intervals;
  for (const auto& [device, rows] : devices) intervals.devices.push_back(device);
  for (const auto& [family, rows] : samples) intervals.families.emplace(family, fit_family_intervals(rows));
  intervals.other = widest_intervals(intervals.families);
  return intervals;
}

}  // namespace foretoken
