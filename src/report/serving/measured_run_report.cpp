#include "report/serving/measured_run_report.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/simulated_time.h"
#include "report/parts/table.h"
#include "report/serving/serving_report.h"

namespace foretoken {
namespace {

Picoseconds time_of(double seconds) {
  return to_picoseconds(Seconds(std::max(0.0, seconds)));
}

ServingReport report_of(const MeasuredRunReport& report, const ServingRun& run) {
  const MeasuredLoad& load = report.run.load;
  ServingReport result{.model = report.run.model,
                       .replicas = {},
                       .label = report.run.tool.empty() ? "measured" : report.run.tool,
                       .metadata = {},
                       .num_prompts = load.num_prompts.value_or(static_cast<int64_t>(report.run.requests.size())),
                       .request_rate = load.request_rate.value_or(std::numeric_limits<double>::infinity()),
                       .burstiness = load.burstiness.value_or(1),
                       .max_concurrency = load.max_concurrency,
                       .percentiles = report.percentiles,
                       .percentile_metrics = report.percentile_metrics,
                       .priorities = {},
                       .run = run};
  return result;
}

// Each message once, with how often it came.
std::map<std::string, int64_t> errors_of(const MeasuredRun& run) {
  std::map<std::string, int64_t> errors;
  for (const MeasuredRequest& request : run.requests) {
    if (request.status == MeasuredStatus::completed) continue;
    ++errors[request.error.empty() ? std::string(measured_status_name(request.status)) : request.error];
  }
  return errors;
}

std::string samples_text(const MeasuredRun& run) {
  if (run.samples.empty()) return "";
  double running = 0, waiting = 0, usage = 0;
  for (const MetricsSample& sample : run.samples) {
    running = std::max(running, sample.running.value_or(0));
    waiting = std::max(waiting, sample.waiting.value_or(0));
    usage = std::max(usage, sample.kv_usage.value_or(0));
  }
  std::string text = fmt::format("server: at most {:.0f} running, {:.0f} waiting, {:.0f}% of the KV cache used",
                                 running, waiting, 100 * usage);
  const auto grown = [&](std::optional<double> MetricsSample::*counter) -> std::optional<double> {
    const auto first = run.samples.front().*counter, last = run.samples.back().*counter;
    return first && last ? std::optional(*last - *first) : std::nullopt;
  };
  const auto queries = grown(&MetricsSample::prefix_queries), hits = grown(&MetricsSample::prefix_hits);
  if (queries && hits && *queries > 0) text += fmt::format("; {:.1f}% prefix hits", 100 * *hits / *queries);
  if (const auto preemptions = grown(&MetricsSample::preemptions)) {
    text += fmt::format("; {:.0f} preemptions", *preemptions);
  }
  return text + fmt::format(" ({})\n", counted(run.samples.size(), "sample"));
}

// Of a run without times of requests: what the tool itself says.
std::string summary_text(const MeasuredRun& run) {
  const MeasuredSummary& summary = run.summary;
  std::string text;
  const auto count = [&](const char* label, const auto& value) {
    if (value) text += fmt::format("{:<34} {:>12.6g}\n", label, static_cast<double>(*value));
  };
  count("Successful requests", summary.completed);
  count("Failed requests", summary.failed);
  count("Request throughput (req/s)", summary.request_throughput);
  count("Output token throughput (tok/s)", summary.output_throughput);
  count("Mean prompt tokens", run.load.input_len);
  count("Mean output tokens", run.load.output_len);
  Table table({{"latency (ms)", Table::Align::left}, {"mean"}, {"p50"}, {"p90"}, {"p99"}});
  bool has_rows = false;
  const auto add = [&](const char* name, const MeasuredLatency& latency) {
    if (latency.is_empty()) return;
    has_rows = true;
    const auto cell = [](const std::optional<double>& seconds) {
      return seconds ? fmt::format("{:.2f}", 1e3 * *seconds) : std::string("-");
    };
    const auto percentile = [&](double which) {
      const auto found = latency.percentiles.find(which);
      return cell(found == latency.percentiles.end() ? std::nullopt : std::optional(found->second));
    };
    table.add({name, cell(latency.mean), percentile(50), percentile(90), percentile(99)});
  };
  add("TTFT", summary.ttft);
  add("TPOT", summary.tpot);
  add("ITL", summary.itl);
  add("E2E", summary.e2e);
  return has_rows ? text + table.text() : text;
}

}  // namespace

ServingMetrics measured_metrics(const MeasuredRun& run, const LatencyGoals& goals,
                                const std::vector<double>& percentiles) {
  double begin = std::numeric_limits<double>::infinity();
  for (const MeasuredRequest& request : run.requests) begin = std::min(begin, request.sent());
  MetricsCollector collector(run.requests.empty() ? 0 : time_of(begin), goals);
  int64_t id = 0;
  for (const MeasuredRequest& request : run.requests) {
    const Picoseconds sent = time_of(request.sent());
    RequestRecord record{.id = id++, .input_tokens = request.input_tokens, .output_tokens = request.output_tokens};
    record.arrival = record.queued = record.scheduled = sent;
    if (!request.has_times()) {
      record.outcome = RequestOutcome::rejected;
      if (request.status != MeasuredStatus::completed) collector.request_ended(record);
      continue;
    }
    record.cached_tokens = request.cached_tokens.value_or(0);
    record.first_token = sent + time_of(*request.ttft_s);
    record.last_token = std::max(record.first_token, sent + time_of(*request.e2e_s));
    collector.request_ended(record);
    Picoseconds at = record.first_token;
    for (const double gap : request.gaps_s) {
      const Picoseconds length = time_of(gap);
      collector.token_gaps(length, 1);
      collector.step_ran({.begin = at + length, .end = at + length, .decode_tokens = 1});
      at += length;
    }
  }
  return collector.metrics(percentiles);
}

std::string measured_run_text(const MeasuredRunReport& report) {
  ServingRun run;
  run.metrics = measured_metrics(report.run, report.goals, report.percentiles);
  const std::vector<MeasuredRequest>& requests = report.run.requests;
  const bool has_times =
      std::any_of(requests.begin(), requests.end(), [](const MeasuredRequest& request) { return request.has_times(); });
  std::string text = has_times ? benchmark_table(report_of(report, run)) : summary_text(report.run);
  if (!has_times && !requests.empty()) text += fmt::format("No times for {}\n", counted(requests.size(), "request"));
  text += samples_text(report.run);
  for (const auto& [error, count] : errors_of(report.run)) {
    text += wrap_lines(fmt::format("{} failed: {}\n", counted(count, "request"), error), page_width(), 2);
  }
  for (const std::string& note : report.run.notes) text += wrap_lines("note: " + note + "\n", page_width(), 2);
  return text;
}

Json measured_run_json(const MeasuredRunReport& report) {
  ServingRun run;
  run.metrics = measured_metrics(report.run, report.goals, report.percentiles);
  Json json = vllm_result_json(report_of(report, run));
  Json errors = Json::object();
  for (const auto& [error, count] : errors_of(report.run)) errors.set(error, count);
  Json notes = Json::array();
  for (const std::string& note : report.run.notes) notes.push(note);
  json.set("errors", std::move(errors)).set("samples", report.run.samples.size()).set("notes", std::move(notes));
  return json;
}

}  // namespace foretoken
