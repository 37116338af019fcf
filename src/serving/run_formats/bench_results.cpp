// vllm bench serve (vllm/benchmarks/serve.py) and sglang.bench_serving (sglang/benchmark/serving.py). Both save one
// object; SGLang appends it to a file of lines.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/run_formats/format_parts.h"

namespace foretoken {
namespace {

const Json* last_result(const RunFile& file, bool (*is_one)(const Json&)) {
  if (file.lines.empty() || !is_one(file.lines.back())) return nullptr;
  return &file.lines.back();
}

bool is_vllm_result(const Json& json) {
  return has_keys(json, {"mean_ttft_ms", "request_throughput", "completed"});
}

bool is_sglang_result(const Json& json) {
  return has_keys(json, {"mean_ttft_ms", "request_throughput", "completed", "mean_e2e_latency_ms"});
}

// mean_ttft_ms, median_ttft_ms, p99_ttft_ms, p99.9_ttft_ms.
MeasuredLatency result_latency(const JsonView& result, std::string_view name) {
  MeasuredLatency latency;
  for (const auto& [key, value] : result.members()) {
    const std::string ending = fmt::format("_{}_ms", name);
    if (!key.ends_with(ending) || !value.is_number()) continue;
    const std::string_view what = std::string_view(key).substr(0, key.size() - ending.size());
    const double seconds = value.number({.least = 0, .most = 1e13}) / 1e3;
    if (what == "mean") latency.mean = seconds;
    if (what == "median") latency.percentiles[50] = seconds;
    if (!what.starts_with('p')) continue;
    const std::optional<double> percentile = parse_number(what.substr(1));
    if (percentile && *percentile >= 0 && *percentile <= 100) latency.percentiles[*percentile] = seconds;
  }
  return latency;
}

std::optional<double> rate_of(const JsonView& result) {
  const auto rate = result.find("request_rate");
  if (!rate) return std::nullopt;
  const bool is_endless = rate->is(Json::Kind::string) && rate->value().string().starts_with("inf");
  if (is_endless) return std::numeric_limits<double>::infinity();
  if (!rate->is_number()) return std::nullopt;
  const double number = rate->value().number();
  return number > 0 ? std::optional(number) : std::nullopt;
}

// One list for each request; empty where the file was saved without details.
std::vector<JsonView> list_at(const JsonView& result, std::string_view key, size_t size) {
  const auto list = result.find(key);
  if (!list || !list->is(Json::Kind::array)) return {};
  std::vector<JsonView> items = list->items();
  if (items.size() != size) list->fail(fmt::format("{} values, as many as input_lens", size));
  return items;
}

void read_details(const JsonView& result, MeasuredRun& run) {
  const auto lengths = result.find("input_lens");
  if (!lengths || !lengths->is(Json::Kind::array)) return;
  const std::vector<JsonView> inputs = lengths->items();
  const std::vector<JsonView> outputs = list_at(result, "output_lens", inputs.size());
  const std::vector<JsonView> ttfts = list_at(result, "ttfts", inputs.size());
  const std::vector<JsonView> gaps = list_at(result, "itls", inputs.size());
  const std::vector<JsonView> starts = list_at(result, "start_times", inputs.size());
  const std::vector<JsonView> errors = list_at(result, "errors", inputs.size());
  if (outputs.empty() || ttfts.empty() || starts.empty()) {
    run.notes.emplace_back("the file lists requests without send times, so only its summary was read");
    return;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    MeasuredRequest request;
    request.arrival_s = starts[i].number({.least = 0, .most = most_seconds_of_run});
    request.input_tokens = inputs[i].integer({.least = 0, .most = most_tokens_of_request});
    request.output_tokens = outputs[i].integer({.least = 0, .most = most_tokens_of_request});
    const std::string error = !errors.empty() && errors[i].is(Json::Kind::string) ? errors[i].string() : "";
    const double ttft = ttfts[i].number({.least = 0, .most = most_seconds_of_run});
    if (!error.empty() || request.output_tokens == 0) {
      request.status = MeasuredStatus::failed;
      request.error = error;
    } else {
      request.ttft_s = ttft;
      double end = ttft;
      if (!gaps.empty()) {
        for (const JsonView& gap : gaps[i].items()) {
          request.gaps_s.push_back(gap.number({.least = 0, .most = most_seconds_of_run}));
          end += request.gaps_s.back();
        }
        request.e2e_s = end;
      }
    }
    run.requests.push_back(std::move(request));
  }
}

MeasuredRun read_result(const Json& json, const RunFile& file) {
  const JsonView result(json, file.source);
  MeasuredRun run;
  run.model = text_at(result, "model_id");
  run.started = text_at(result, "date");
  run.seconds = number_at(result, "duration");
  run.load.request_rate = rate_of(result);
  run.load.burstiness = number_at(result, "burstiness");
  run.load.max_concurrency = count_at(result, "max_concurrency");
  run.load.num_prompts = count_at(result, "num_prompts");
  MeasuredSummary& summary = run.summary;
  summary.ttft = result_latency(result, "ttft");
  summary.tpot = result_latency(result, "tpot");
  summary.itl = result_latency(result, "itl");
  summary.request_throughput = number_at(result, "request_throughput");
  summary.output_throughput = number_at(result, "output_throughput");
  summary.completed = count_at(result, "completed");
  summary.failed = count_at(result, "failed");
  const double completed = number_at(result, "completed").value_or(0);
  if (const auto tokens = number_at(result, "total_input_tokens"); tokens && completed > 0) {
    run.load.input_len = *tokens / completed;
  }
  if (const auto tokens = number_at(result, "total_output_tokens"); tokens && completed > 0) {
    run.load.output_len = *tokens / completed;
  }
  read_details(result, run);
  if (!run.model.empty()) run.deployment.set("model", run.model);
  return run;
}

}  // namespace

bool is_vllm_bench(const RunFile& file) {
  return last_result(file, is_vllm_result) != nullptr;
}

MeasuredRun read_vllm_bench(const RunFile& file) {
  const Json& json = *last_result(file, is_vllm_result);
  MeasuredRun run = read_result(json, file);
  const JsonView result(json, file.source);
  run.tool = "vllm bench serve";
  run.summary.e2e = result_latency(result, "e2el");
  run.summary.total_throughput = number_at(result, "total_token_throughput");
  const std::string backend = text_at(result, "backend");
  if (backend == "vllm" || backend == "sglang") run.engine = backend;
  if (file.lines.size() > 1) run.notes.push_back(fmt::format("the last of {} runs in the file", file.lines.size()));
  return run;
}

bool is_sglang_bench(const RunFile& file) {
  return last_result(file, is_sglang_result) != nullptr;
}

MeasuredRun read_sglang_bench(const RunFile& file) {
  const Json& json = *last_result(file, is_sglang_result);
  MeasuredRun run = read_result(json, file);
  const JsonView result(json, file.source);
  run.tool = "sglang.bench_serving";
  run.summary.e2e = result_latency(result, "e2e_latency");
  run.summary.total_throughput = number_at(result, "total_throughput");
  run.load.dataset = text_at(result, "dataset_name");
  const std::string backend = text_at(result, "backend");
  if (backend.starts_with("sglang")) run.engine = "sglang";
  if (backend.starts_with("vllm")) run.engine = "vllm";
  if (const auto server = result.find("server_info"); server && server->is(Json::Kind::object)) {
    run.engine_version = text_at(*server, "version");
    if (run.model.empty()) run.model = text_at(*server, "model_path");
    for (const auto& [key, field] :
         {std::pair("tp_size", "tensor_parallel_size"), std::pair("max_running_requests", "max_num_seqs"),
          std::pair("chunked_prefill_size", "max_num_batched_tokens")}) {
      if (const auto count = count_at(*server, key); count && *count > 0) run.deployment.set(field, *count);
    }
    if (!run.model.empty()) run.deployment.set("model", run.model);
    run.deployment.set("engine", "sglang");
  }
  if (file.lines.size() > 1) run.notes.push_back(fmt::format("the last of {} runs in the file", file.lines.size()));
  return run;
}

}  // namespace foretoken
