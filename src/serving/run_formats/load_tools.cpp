// GuideLLM (guidellm/schemas/request_stats.py), AIPerf and genai-perf (profile exports), inference-perf
// (reportgen/base.py), LLMPerf (token_benchmark_ray.py).
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/run_formats/format_parts.h"

namespace foretoken {
namespace {

// {"mean": .., "median": .., "p99": ..}, under names that tools vary.
MeasuredLatency latency_at(const JsonView& object, std::string_view key, double seconds_per_unit) {
  MeasuredLatency latency;
  const auto found = object.find(key);
  if (!found || !found->is(Json::Kind::object)) return latency;
  for (const auto& [name, value] : found->members()) {
    if (!value.is_number()) continue;
    const double seconds = value.value().number() * seconds_per_unit;
    if (name == "mean" || name == "avg") latency.mean = seconds;
    if (name == "median") latency.percentiles[50] = seconds;
    const std::optional<double> percentile = name.starts_with('p') ? parse_number(name.substr(1)) : std::nullopt;
    if (percentile && *percentile >= 0 && *percentile <= 100) latency.percentiles[*percentile] = seconds;
  }
  return latency;
}

// ---- GuideLLM ------------------------------------------------------------------------------------------------------

MeasuredRequest guidellm_request(const JsonView& row, MeasuredStatus status) {
  MeasuredRequest request;
  const auto start = duration_at(row, "request_start_time");
  if (!start) row.fail("request_start_time");
  request.arrival_s = *start;
  request.status = status;
  request.input_tokens = row.has("prompt_tokens") ? tokens_at(row, "prompt_tokens") : 0;
  request.output_tokens = row.has("output_tokens") ? tokens_at(row, "output_tokens") : 0;
  request.cached_tokens = count_at(row, "cached_tokens");
  if (status != MeasuredStatus::completed) return request;
  request.ttft_s = duration_at(row, "time_to_first_token_ms", 1e-3);
  request.e2e_s = duration_at(row, "request_latency");
  return request;
}

// ---- AIPerf --------------------------------------------------------------------------------------------------------

// {"value": 255.9, "unit": "ms"}.
std::optional<double> metric_seconds(const JsonView& metrics, std::string_view name) {
  const auto metric = metrics.find(name);
  if (!metric || !metric->is(Json::Kind::object)) return std::nullopt;
  const std::string unit = text_at(*metric, "unit");
  const double scale = unit == "ms" ? 1e-3 : unit == "ns" ? 1e-9 : unit == "us" ? 1e-6 : 1;
  return duration_at(*metric, "value", scale);
}

std::optional<int64_t> metric_count(const JsonView& metrics, std::string_view name) {
  const auto metric = metrics.find(name);
  if (!metric || !metric->is(Json::Kind::object)) return std::nullopt;
  return count_at(*metric, "value");
}

double unit_seconds(const JsonView& metric) {
  const std::string unit = text_at(metric, "unit");
  return unit == "ns" ? 1e-9 : unit == "us" ? 1e-6 : unit == "s" || unit == "sec" ? 1 : 1e-3;
}

}  // namespace

bool is_guidellm(const RunFile& file) {
  if (!has_keys(file.json, {"benchmarks"})) return false;
  const Json& list = *file.json.find("benchmarks");
  return list.kind() == Json::Kind::array && !list.items().empty() &&
         has_keys(list.items().front(), {"metrics", "requests"});
}

MeasuredRun read_guidellm(const RunFile& file) {
  MeasuredRun run;
  run.tool = "GuideLLM";
  if (const auto metadata = file.view().find("metadata")) run.tool_version = text_at(*metadata, "guidellm_version");
  int64_t stage = 0;
  for (const JsonView& benchmark : file.view().at("benchmarks").items()) {
    const JsonView requests = benchmark.at("requests");
    const size_t before = run.requests.size();
    const auto add = [&](std::string_view key, MeasuredStatus status) {
      const auto list = requests.find(key);
      if (!list) return;
      for (const JsonView& row : list->items()) {
        run.requests.push_back(guidellm_request(row, status));
        run.requests.back().stage = stage;
      }
    };
    add("successful", MeasuredStatus::completed);
    add("errored", MeasuredStatus::failed);
    add("incomplete", MeasuredStatus::cancelled);
    if (run.requests.size() == before) continue;
    ++stage;
    double start = run.requests[before].arrival_s;
    for (size_t i = before; i < run.requests.size(); ++i) start = std::min(start, run.requests[i].arrival_s);
    run.stages.push_back({.start_s = start, .seconds = number_at(benchmark, "duration"), .load = {}, .summary = {}});
  }
  if (!run.stages.empty()) {
    const double first = run.stages.front().start_s;
    for (MeasuredStage& one : run.stages) one.start_s = std::max(0.0, one.start_s - first);
  }
  if (run.stages.size() < 2) run.stages.clear();
  return run;
}

bool is_aiperf_records(const RunFile& file) {
  if (file.lines.empty() || !has_keys(file.lines.front(), {"metadata", "metrics"})) return false;
  return has_keys(*file.lines.front().find("metadata"), {"request_start_ns"});
}

MeasuredRun read_aiperf_records(const RunFile& file) {
  MeasuredRun run;
  run.tool = "AIPerf";
  for (const Json& line : file.lines) {
    const JsonView record(line, file.source);
    const JsonView metadata = record.at("metadata");
    MeasuredRequest request;
    request.arrival_s = metadata.at("request_start_ns").number({.least = 0, .most = 1e19}) * 1e-9;
    const auto metrics = record.find("metrics");
    const auto error = record.find("error");
    const auto cancelled = metadata.find("was_cancelled");
    if (cancelled && cancelled->is(Json::Kind::boolean) && cancelled->boolean()) {
      request.status = MeasuredStatus::cancelled;
    } else if (error || !metrics) {
      request.status = MeasuredStatus::failed;
      if (error) request.error = text_at(*error, "message");
    }
    if (metrics) {
      request.input_tokens = metric_count(*metrics, "input_sequence_length").value_or(0);
      request.output_tokens = metric_count(*metrics, "output_sequence_length").value_or(0);
      if (request.input_tokens < 0 || request.output_tokens < 0) metrics->fail("token counts of at least 0");
      if (request.status == MeasuredStatus::completed) {
        request.ttft_s = metric_seconds(*metrics, "time_to_first_token");
        request.e2e_s = metric_seconds(*metrics, "request_latency");
        const auto gaps = metrics->find("inter_chunk_latency");
        if (gaps && gaps->has("value") && gaps->at("value").is(Json::Kind::array)) {
          for (const JsonView& gap : gaps->at("value").items()) {
            request.gaps_s.push_back(gap.number({.least = 0, .most = 1e13}) * unit_seconds(*gaps));
          }
        }
      }
    }
    run.requests.push_back(std::move(request));
  }
  return run;
}

bool is_genai_perf(const RunFile& file) {
  return has_keys(file.json, {"request_latency", "time_to_first_token"}) &&
         has_keys(*file.json.find("request_latency"), {"avg", "unit"});
}

MeasuredRun read_genai_perf(const RunFile& file) {
  const JsonView json = file.view();
  MeasuredRun run;
  run.tool = json.has("aiperf_version") ? "AIPerf" : "genai-perf";
  run.tool_version = text_at(json, "aiperf_version");
  const auto latency = [&](std::string_view key) {
    const auto metric = json.find(key);
    return metric ? latency_at(json, key, unit_seconds(*metric)) : MeasuredLatency{};
  };
  run.summary.ttft = latency("time_to_first_token");
  run.summary.tpot = latency("inter_token_latency");
  run.summary.e2e = latency("request_latency");
  const auto average = [&](std::string_view key) {
    const auto metric = json.find(key);
    return metric ? number_at(*metric, "avg") : std::nullopt;
  };
  run.summary.request_throughput = average("request_throughput");
  run.summary.output_throughput = average("output_token_throughput");
  if (const auto count = average("request_count")) run.summary.completed = exact_integer(*count);
  run.load.input_len = average("input_sequence_length");
  run.load.output_len = average("output_sequence_length");
  for (const char* key : {"input_config", "config"}) {
    const auto config = json.find(key);
    if (!config || !config->is(Json::Kind::object)) continue;
    run.load.max_concurrency = count_at(*config, "concurrency");
    run.load.request_rate = number_at(*config, "request_rate");
  }
  return run;
}

bool is_inference_perf(const RunFile& file) {
  return has_keys(file.json, {"load_summary", "successes", "failures"});
}

MeasuredRun read_inference_perf(const RunFile& file) {
  const JsonView json = file.view();
  const JsonView successes = json.at("successes");
  MeasuredRun run;
  run.tool = "inference-perf";
  const JsonView load = json.at("load_summary");
  run.load.request_rate = number_at(load, "requested_rate");
  run.load.num_prompts = count_at(load, "count");
  run.seconds = number_at(load, "send_duration");
  // Older reports have the latencies at the top.
  const auto nested = successes.find("latency");
  const JsonView latency = nested ? *nested : successes;
  run.summary.ttft = latency_at(latency, "time_to_first_token", 1);
  run.summary.tpot = latency_at(latency, "time_per_output_token", 1);
  run.summary.itl = latency_at(latency, "inter_token_latency", 1);
  run.summary.e2e = latency_at(latency, "request_latency", 1);
  if (const auto throughput = successes.find("throughput")) {
    run.summary.request_throughput = number_at(*throughput, "requests_per_sec");
    run.summary.output_throughput = number_at(*throughput, "output_tokens_per_sec");
    run.summary.total_throughput = number_at(*throughput, "total_tokens_per_sec");
  }
  run.summary.completed = count_at(successes, "count");
  run.summary.failed = count_at(json.at("failures"), "count");
  if (const auto length = successes.find("prompt_len")) run.load.input_len = number_at(*length, "mean");
  if (const auto length = successes.find("output_len")) run.load.output_len = number_at(*length, "mean");
  return run;
}

bool is_inference_perf_requests(const RunFile& file) {
  return file.json.kind() == Json::Kind::array && !file.json.items().empty() &&
         has_keys(file.json.items().front(), {"start_time", "end_time", "info"});
}

MeasuredRun read_inference_perf_requests(const RunFile& file) {
  MeasuredRun run;
  run.tool = "inference-perf";
  for (const JsonView& row : file.view().items()) {
    MeasuredRequest request;
    const double start = row.at("start_time").number({.least = 0, .most = most_seconds_of_run});
    const double end = row.at("end_time").number({.least = start, .most = most_seconds_of_run});
    request.arrival_s = start;
    if (const auto error = row.find("error"); error && !error->is(Json::Kind::null)) {
      request.status = MeasuredStatus::failed;
      request.error = text_at(*error, "error_msg");
    }
    if (const auto info = row.find("info")) {
      request.input_tokens = count_at(*info, "input_tokens").value_or(0);
      const auto nested = info->find("response_metrics");
      const JsonView response = nested && nested->is(Json::Kind::object) ? *nested : *info;
      request.output_tokens = count_at(response, "output_tokens").value_or(0);
      if (request.input_tokens < 0 || request.output_tokens < 0) info->fail("token counts of at least 0");
      const auto times = response.find("output_token_times");
      if (times && request.status == MeasuredStatus::completed) {
        double last = start;
        for (const JsonView& time : times->items()) {
          const double at = time.number({.least = last, .most = most_seconds_of_run});
          if (request.ttft_s) {
            request.gaps_s.push_back(at - last);
          } else {
            request.ttft_s = at - start;
          }
          last = at;
        }
      }
    }
    if (request.status == MeasuredStatus::completed) request.e2e_s = end - start;
    run.requests.push_back(std::move(request));
  }
  return run;
}

bool is_llmperf(const RunFile& file) {
  return has_keys(file.json, {"results_ttft_s_mean", "results_end_to_end_latency_s_mean"});
}

MeasuredRun read_llmperf(const RunFile& file) {
  const JsonView json = file.view();
  MeasuredRun run;
  run.tool = "LLMPerf";
  run.model = text_at(json, "model");
  const auto latency = [&](const std::string& name) {
    MeasuredLatency result;
    result.mean = duration_at(json, "results_" + name + "_mean");
    for (const int percentile : {25, 50, 75, 90, 95, 99}) {
      const auto value = duration_at(json, fmt::format("results_{}_quantiles_p{}", name, percentile));
      if (value) result.percentiles[percentile] = *value;
    }
    return result;
  };
  run.summary.ttft = latency("ttft_s");
  run.summary.tpot = latency("inter_token_latency_s");
  run.summary.e2e = latency("end_to_end_latency_s");
  run.summary.output_throughput = number_at(json, "results_mean_output_throughput_token_per_s");
  if (const auto a_minute = number_at(json, "results_num_completed_requests_per_min")) {
    run.summary.request_throughput = *a_minute / 60;
  }
  run.summary.completed = count_at(json, "results_num_completed_requests");
  run.load.max_concurrency = count_at(json, "num_concurrent_requests");
  run.load.input_len = number_at(json, "results_number_input_tokens_mean");
  run.load.output_len = number_at(json, "results_number_output_tokens_mean");
  if (!run.load.input_len) run.load.input_len = number_at(json, "mean_input_tokens");
  if (!run.load.output_len) run.load.output_len = number_at(json, "mean_output_tokens");
  if (!run.model.empty()) run.deployment.set("model", run.model);
  return run;
}

bool is_llmperf_responses(const RunFile& file) {
  return file.json.kind() == Json::Kind::array && !file.json.items().empty() &&
         has_keys(file.json.items().front(), {"ttft_s", "end_to_end_latency_s", "number_input_tokens"});
}

MeasuredRun read_llmperf_responses(const RunFile& file) {
  MeasuredRun rows, run;
  for (const JsonView& row : file.view().items()) {
    MeasuredRequest request;
    const auto error = row.find("error_code");
    const bool failed = error && error->is_number() && error->value().number() != 0;
    if (failed) {
      request.status = MeasuredStatus::failed;
    } else {
      request.input_tokens = tokens_at(row, "number_input_tokens");
      request.output_tokens = tokens_at(row, "number_output_tokens");
      request.ttft_s = duration_at(row, "ttft_s");
      request.e2e_s = duration_at(row, "end_to_end_latency_s");
    }
    rows.requests.push_back(std::move(request));
  }
  run.tool = "LLMPerf";
  run.summary = summarize(rows);
  // Nobody knows when they were sent, so that rates mean nothing.
  run.summary.request_throughput = run.summary.output_throughput = run.summary.total_throughput = std::nullopt;
  double input = 0, output = 0, completed = 0;
  for (const MeasuredRequest& request : rows.requests) {
    if (!request.has_times()) continue;
    input += static_cast<double>(request.input_tokens);
    output += static_cast<double>(request.output_tokens);
    ++completed;
  }
  if (completed > 0) {
    run.load.input_len = input / completed;
    run.load.output_len = output / completed;
  }
  run.notes.emplace_back("LLMPerf does not record when requests were sent, so only a summary is kept");
  return run;
}

}  // namespace foretoken
