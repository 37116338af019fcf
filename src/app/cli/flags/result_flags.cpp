#include "app/cli/flags/result_flags.h"

#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "app/cli/flags/replica_flags.h"
#include "app/cli/output/out_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/serving/serving_files.h"
#include "report/serving/serving_series.h"
#include "serving/results/request_details.h"
#include "serving/results/typical_steps.h"

namespace foretoken {
namespace {

std::string result_path(const ResultFlags& flags) {
  if (!flags.save_result) {
    const char* given = flags.save_detailed ? "--save-detailed" : flags.append_result ? "--append-result" : nullptr;
    if (given != nullptr) throw InputError({.source = given, .expected = "--save-result together with it"});
    return "";
  }
  std::error_code failed;  // said again, with the name, when the file is opened
  std::filesystem::create_directories(flags.result_dir, failed);
  return (std::filesystem::path(flags.result_dir) / flags.result_filename).string();
}

// Each would overwrite the other.
void refuse_equal_paths(const ResultFlags& flags) {
  namespace fs = std::filesystem;
  std::map<fs::path, const char*> flag_of;
  const std::pair<const char*, std::string> outputs[] = {{"--out-requests", flags.out_requests},
                                                         {"--out-steps", flags.out_steps},
                                                         {"--out-series", flags.out_series},
                                                         {"--out-trace", flags.out_trace},
                                                         {"--result-filename", result_path(flags)}};
  for (const auto& [flag, path] : outputs) {
    if (path.empty()) continue;
    std::error_code failed;
    const fs::path whole = fs::weakly_canonical(path, failed);
    const auto [other, is_new] = flag_of.emplace(failed ? fs::path(path).lexically_normal() : whole, flag);
    if (is_new || path == "/dev/null") continue;
    throw InputError(
        {.source = flag, .value = printable(path), .expected = fmt::format("a different file from {}", other->second)});
  }
}

}  // namespace

void ResultFlags::declare(Options& options) {
  options.flag("--save-result", save_result, "Write the results in vLLM's benchmark JSON format");
  options.flag("--save-detailed", save_detailed,
               "Include lengths, TTFT, inter-token latencies and errors of each request in the result file");
  options.flag("--details-in-json", details_in_json, "Include the details of each request in the --json answer");
  options.flag("--append-result", append_result,
               "Append the result to the file as one line instead of replacing the file");
  options.text("--result-dir", result_dir, "Folder of the result file");
  options.text("--result-filename", result_filename, "Name of the result file");
  options.text("--label", label, "Label stored in the result file [the scheduler's name]");
  options.list("--metadata", metadata, "Additional keys for the result file: KEY=VALUE");
  options.text("--out-requests", out_requests, "Write each request to this CSV file");
  options.text("--out-steps", out_steps, "Write each step to this CSV file");
  options.text("--out-series", out_series, "Write requests, KV use and tokens/s over time to this CSV file");
  options.text("--out-trace", out_trace, "Write the run as a Chrome trace (.json or .json.gz) for ui.perfetto.dev");
  options.list(
      "--trace-kernels-at", kernels_at,
      "In the trace, also draw every kernel of the steps that run at these times, in seconds (comma-separated)");
  options.flag("--trace-in-json", trace_in_json, "Include the Chrome trace in the --json answer");
}

std::vector<std::pair<std::string, std::string>> ResultFlags::metadata_pairs() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& item : metadata) {
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw InputError({.source = "--metadata", .value = printable(item), .expected = "KEY=VALUE"});
    }
    pairs.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return pairs;
}

struct ResultFiles::Parts {
  // Before any file is opened, and so emptied.
  static const ResultFlags& checked(const ResultFlags& flags) {
    refuse_equal_paths(flags);
    return flags;
  }
  explicit Parts(const ResultFlags& from)
      : flags(checked(from)),
        requests("--out-requests", from.out_requests),
        steps("--out-steps", from.out_steps),
        series("--out-series", from.out_series),
        result("--result-dir", result_path(from), from.append_result ? OutFile::Mode::append : OutFile::Mode::replace) {
  }

  ResultFlags flags;
  OutFile requests, steps, series, result;
  std::optional<RequestCsv> request_csv;
  std::optional<StepCsv> step_csv;
  std::optional<RunTrace> trace;
  std::optional<RequestDetails> details;
};

ResultFiles::ResultFiles(const ResultFlags& flags) : parts_(std::make_unique<Parts>(flags)) {
  Parts& parts = *parts_;
  if (parts.requests.wanted()) parts.request_csv.emplace(parts.requests.stream(), with_flag_names);
  if (parts.steps.wanted()) parts.step_csv.emplace(parts.steps.stream());
  if (!flags.out_trace.empty()) {
    OutFile("--out-trace", flags.out_trace, OutFile::Mode::append).close();  // written whole at the end
  }
  if (!flags.out_trace.empty() || flags.trace_in_json) parts.trace.emplace();
  if (flags.save_detailed || flags.details_in_json) parts.details.emplace();
  if (flags.kernels_at.empty()) return;
  if (!parts.trace) {
    throw InputError({.source = "--trace-kernels-at", .value = "no trace", .expected = "--out-trace FILE beside it"});
  }
  std::vector<double> moments;
  for (const std::string& text : flags.kernels_at) {
    const std::optional<double> moment = parse_number(text);
    if (!moment || !(*moment >= 0 && *moment <= 1e6)) {
      throw InputError(
          {.source = "--trace-kernels-at", .value = printable(text), .expected = "seconds from 0 to 1000000"});
    }
    moments.push_back(*moment);
  }
  constexpr size_t most_moments = 100;
  if (moments.size() > most_moments) {
    throw InputError({.source = "--trace-kernels-at",
                      .value = fmt::format("{} times", moments.size()),
                      .expected = fmt::format("at most {}", most_moments)});
  }
  parts.trace->watch(moments);
}
ResultFiles::~ResultFiles() = default;

std::vector<RunObserver*> ResultFiles::observers() {
  std::vector<RunObserver*> all;
  const auto add = [&](auto& part) {
    if (part) all.push_back(&*part);
  };
  add(parts_->request_csv);
  add(parts_->step_csv);
  add(parts_->trace);
  add(parts_->details);
  return all;
}

void ResultFiles::add_kernels(const std::vector<ReplicaGroup>& groups) {
  if (parts_->flags.kernels_at.empty()) return;
  if (parts_->trace->watched().empty()) {
    throw InputError({.source = "--trace-kernels-at",
                      .value = fmt::format("{}", fmt::join(parts_->flags.kernels_at, ",")),
                      .expected = "times at which a step runs (--out-steps lists them)"});
  }
  const std::vector<StepRecord> watched = parts_->trace->watched();
  for (const StepRecord& record : watched) {
    size_t of = 0;
    for (int64_t before = record.replica; before >= groups[of].count; ++of) before -= groups[of].count;
    StepMix mix;
    mix.step_ran(record);
    for (const TypicalStep& one : typical_steps_of(groups[of], mix, "--trace-kernels-at")) {
      parts_->trace->add_kernels(record, one.step, groups[of].composed().stack);
    }
  }
}

std::string ResultFiles::finish(const ServingReport& report) {
  Parts& parts = *parts_;
  parts.requests.close();
  parts.steps.close();
  if (parts.series.wanted()) parts.series.stream() << time_series_csv(report.run);
  parts.series.close();
  if (!parts.flags.out_trace.empty()) write_file(parts.flags.out_trace, parts.trace->document().dump(0) + "\n");
  if (parts.result.wanted()) {
    Json result = vllm_result_json(report);
    if (parts.flags.save_detailed) add_request_arrays(result, parts.details->by_id());
    name_flags(result);
    parts.result.stream() << result.dump(parts.flags.append_result ? 0 : 2) << "\n";
    parts.result.close();
  }
  const bool cut = parts.trace && !parts.trace->is_complete();
  return cut ? "The trace holds only the beginning of the run; viewers cannot handle longer ones.\n" : "";
}

void ResultFiles::add_details(Json& answer) const {
  if (parts_->flags.details_in_json) add_request_arrays(answer, parts_->details->by_id());
  if (parts_->flags.trace_in_json) answer.set("trace", parts_->trace->document());
}

}  // namespace foretoken
