// The folder that a measured run is kept in: run.json, and where there are any, requests.csv and metrics.csv, plain or
// gzip (docs/runs.md).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/csv.h"
#include "serving/runs/measured_run.h"

namespace foretoken {

// The folder, or its run.json. InputError with file, line and field.
MeasuredRun read_run_folder(const std::filesystem::path& folder);
// Makes the folder where there is none and replaces the files of a run that it holds. Read back, the run is the same.
void write_run_folder(const std::filesystem::path& folder, const MeasuredRun& run);

// The parts, for those who have them as text.
MeasuredRun parse_run_json(std::string_view text, const std::string& source);
void read_run_requests(CsvReader& table, MeasuredRun& run);  // adds to the run's
void read_run_metrics(CsvReader& table, MeasuredRun& run);
// InputError where the run says nothing: neither a request with times nor a summary.
void check_run(const MeasuredRun& run, const std::string& source);

Json run_json(const MeasuredRun& run);
std::string run_requests_csv(const MeasuredRun& run);
std::string run_metrics_csv(const MeasuredRun& run);

}  // namespace foretoken
