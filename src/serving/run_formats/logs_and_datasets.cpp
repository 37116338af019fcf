// Files that hold a part of a run: BLIS TraceV2 (sim/workload/tracev2.go), MLPerf LoadGen (loadgen/results.cc),
// Prometheus ranges, usage logs, ShareGPT, vLLM's log.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "base/yaml_json.h"
#include "serving/load/trace_date.h"
#include "serving/run_formats/format_parts.h"
#include "serving/runs/prometheus_text.h"
#include "serving/runs/run_folder.h"
#include "serving/tokenizer/token_counter.h"

namespace foretoken {
namespace {

std::string_view first_row(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r'\",:");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r'\",") - begin + 1);
}

void read_blis_header(const std::string& header, const std::string& source, MeasuredRun& run) {
  if (header.empty()) return;
  const Json json = json_of_yaml(parse_yaml(header, source), source);
  const JsonView view(json, source);
  if (!view.is(Json::Kind::object)) return;
  run.started = text_at(view, "created_at");
  const auto server = view.find("server");
  if (!server || !server->is(Json::Kind::object)) return;
  run.engine = text_at(*server, "type");
  run.model = text_at(*server, "model");
  if (!run.model.empty()) run.deployment.set("model", run.model);
  for (const auto& [key, field] : {std::pair("tensor_parallel", "tensor_parallel_size"),
                                   std::pair("max_num_seqs", "max_num_seqs"), std::pair("block_size", "block_size")}) {
    if (const auto count = count_at(*server, key); count && *count > 0) run.deployment.set(field, *count);
  }
  if (const auto share = number_at(*server, "gpu_memory_utilization"); share && *share > 0) {
    run.deployment.set("gpu_memory_utilization", *share);
  }
}

// "99.00 percentile first token latency (ns)", "Mean latency (ns)", in lower case.
void take_mlperf_line(const std::string& name, double nanoseconds, MeasuredSummary& summary) {
  MeasuredLatency* latency = name.find("first token latency") != std::string::npos ? &summary.ttft
                             : name.find("output token") != std::string::npos      ? &summary.tpot
                             : name.find("latency (ns)") != std::string::npos      ? &summary.e2e
                                                                                   : nullptr;
  if (latency == nullptr || !name.ends_with("(ns)")) return;
  if (name.starts_with("mean ")) latency->mean = nanoseconds * 1e-9;
  const size_t words = name.find(" percentile ");
  if (words == std::string::npos) return;
  const std::optional<double> percentile = parse_number(name.substr(0, words));
  if (percentile && *percentile >= 0 && *percentile <= 100) latency->percentiles[*percentile] = nanoseconds * 1e-9;
}

// Seconds since 1970: a number (of milliseconds where it is large), or a date.
std::optional<double> moment_at(const JsonView& row, std::string_view key) {
  const auto value = row.find(key);
  if (!value) return std::nullopt;
  if (value->is_number()) {
    const double number = value->number({.least = 0, .most = 1e16});
    return number > 1e11 ? number / 1e3 : number;
  }
  if (!value->is(Json::Kind::string)) return std::nullopt;
  const std::optional<DateTime> date = parse_date_time(value->value().string());
  if (!date) value->fail("seconds since 1970, or a date, for example 2026-11-17T02:30:00Z");
  return static_cast<double>(date->seconds) + static_cast<double>(date->picoseconds) * 1e-12;
}

// The first of the keys that a row has.
template <class Read>
auto first_of(const JsonView& row, std::initializer_list<std::string_view> keys, const Read& read)
    -> decltype(read(row, std::string_view())) {
  for (const std::string_view key : keys) {
    if (const auto value = read(row, key)) return value;
  }
  return std::nullopt;
}

// A token stands for about four bytes of English.
int64_t estimated_tokens(std::string_view text) {
  return std::max<int64_t>(1, static_cast<int64_t>((text.size() + 3) / 4));
}

// What stands between `before` and one of `ends`; empty where it does not.
std::string_view between(std::string_view line, std::string_view before, std::string_view ends) {
  const size_t begin = line.find(before);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = line.substr(begin + before.size());
  return rest.substr(0, rest.find_first_of(ends));
}

std::optional<double> number_behind(std::string_view line, std::string_view before) {
  std::string digits(between(line, before, " xs\r\n"));
  std::erase(digits, ',');
  return parse_number(digits);
}

}  // namespace

bool is_blis_trace(const RunFile& file) {
  const std::string_view row = first_row(file.text);
  return row.find("request_id") != std::string_view::npos && row.find("arrival_time_us") != std::string_view::npos &&
         row.find("first_chunk_time_us") != std::string_view::npos;
}

MeasuredRun read_blis_trace(const RunFile& file) {
  MeasuredRun run;
  run.tool = "blis observe";
  read_blis_header(file.header, file.source + " (its header)", run);
  CsvReader table = CsvReader::from_text(std::string(file.text), file.source);
  const size_t arrival = table.column("arrival_time_us"), first = table.column("first_chunk_time_us");
  const size_t last = table.column("last_chunk_time_us"), input = table.column("input_tokens");
  const size_t output = table.column("output_tokens");
  const auto sent = table.find_column("send_time_us"), status = table.find_column("status");
  const auto error = table.find_column("error_message"), read_input = table.find_column("server_input_tokens");
  const auto session = table.find_column("session_id");
  std::map<std::string, int64_t, std::less<>> sessions;
  constexpr Range<double> micros{.least = 0, .most = 1e16};
  constexpr Range<int64_t> tokens{.least = 0, .most = most_tokens_of_request};
  while (table.next()) {
    MeasuredRequest request;
    request.arrival_s = table.number(arrival, micros) * 1e-6;
    const double send = sent ? table.number(*sent, micros) * 1e-6 : request.arrival_s;
    request.sent_s = std::max(send, request.arrival_s);
    request.input_tokens = table.integer(input, tokens);
    if (read_input) {
      if (const int64_t told = table.integer(*read_input, tokens); told > 0) request.input_tokens = told;
    }
    request.output_tokens = table.integer(output, tokens);
    if (session && !table.cell(*session).empty()) {
      const auto next = static_cast<int64_t>(sessions.size());
      request.session = sessions.emplace(table.cell(*session), next).first->second;
    }
    const std::string_view ended = status ? table.cell(*status) : "ok";
    if (ended == "ok" || ended == "completed" || ended.empty()) {
      request.ttft_s =
          table.number(first, {.least = *request.sent_s * 1e6, .most = micros.most}) * 1e-6 - *request.sent_s;
      request.e2e_s =
          table.number(last, {.least = *request.sent_s * 1e6, .most = micros.most}) * 1e-6 - *request.sent_s;
    } else {
      request.status = ended == "timeout" ? MeasuredStatus::timed_out : MeasuredStatus::failed;
      request.error = error ? std::string(table.cell(*error)) : "";
    }
    run.requests.push_back(std::move(request));
  }
  return run;
}

bool is_run_requests(const RunFile& file) {
  const std::string_view row = first_row(file.text);
  const std::vector<std::string_view> columns = split(row.substr(0, row.find('\r')), ",");
  const auto has = [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  return has("arrival_s") && has("input_tokens") && has("output_tokens");
}

MeasuredRun read_requests_table(const RunFile& file) {
  MeasuredRun run;
  CsvReader table = CsvReader::from_text(std::string(file.text), file.source);
  read_run_requests(table, run);
  return run;
}

bool is_mlperf_summary(const RunFile& file) {
  return file.text.find("MLPerf Results Summary") != std::string_view::npos;
}

MeasuredRun read_mlperf_summary(const RunFile& file) {
  MeasuredRun run;
  run.tool = "MLPerf LoadGen";
  int number = 0;
  for (const std::string_view line : split(file.text, "\n")) {
    ++number;
    const size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) continue;
    const std::string name = lower_case(stripped(line.substr(0, colon)));
    const std::string_view text = stripped(line.substr(colon + 1));
    if (name == "scenario") run.load.dataset = fmt::format("MLPerf {}", text);
    if (name == "result is" && text != "VALID") run.notes.push_back(fmt::format("LoadGen reports the run as {}", text));
    const bool counts = name.ends_with("per second") || name.ends_with("(ns)") || name == "target_qps";
    if (!counts) continue;
    const std::optional<double> value = parse_number(text);
    if (!value || *value < 0) {
      throw InputError({.source = file.source, .line = number, .value = printable(line), .expected = "a number"});
    }
    if (name == "completed samples per second" || name == "samples per second") run.summary.request_throughput = value;
    if (name == "completed tokens per second" || name == "tokens per second") run.summary.output_throughput = value;
    if (name == "scheduled samples per second") run.load.request_rate = value;
    take_mlperf_line(name, *value, run.summary);
  }
  return run;
}

bool is_prometheus_range(const RunFile& file) {
  return has_keys(file.json, {"status", "data"}) && has_keys(*file.json.find("data"), {"resultType", "result"});
}

MeasuredRun read_prometheus_range(const RunFile& file) {
  const JsonView data = file.view().at("data");
  if (data.at("resultType").string() != "matrix") data.at("resultType").fail("matrix: the answer of query_range");
  MeasuredRun run;
  run.tool = "Prometheus";
  std::map<double, MetricsSample> samples;
  std::map<double, int64_t> with_usage;
  for (const JsonView& series : data.at("result").items()) {
    const std::string name = text_at(series.at("metric"), "__name__");
    const auto field = metrics_sample_field(name);
    if (field == nullptr) continue;
    if (run.engine.empty()) run.engine = name.substr(0, name.find(':'));
    if (run.model.empty()) run.model = text_at(series.at("metric"), "model_name");
    for (const JsonView& point : series.at("values").items()) {
      const std::vector<JsonView> pair = point.items();
      if (pair.size() != 2) point.fail("a time and a value");
      const double time = pair[0].number({.least = 0, .most = most_seconds_of_run});
      const std::optional<double> value = parse_number(pair[1].string());
      if (!value) continue;  // NaN
      std::optional<double>& held = samples[time].*field;
      held = held.value_or(0) + *value;
      if (field == &MetricsSample::kv_usage) ++with_usage[time];
    }
  }
  for (auto& [time, sample] : samples) {
    sample.time_s = time - samples.begin()->first;
    if (sample.kv_usage) *sample.kv_usage /= static_cast<double>(with_usage.at(time));
    run.samples.push_back(sample);
  }
  if (run.samples.empty()) data.at("result").fail("metrics of vLLM or SGLang, for example vllm:num_requests_running");
  return run;
}

bool is_usage_log(const RunFile& file) {
  return !file.lines.empty() && has_keys(file.lines.front(), {"usage"}) &&
         has_keys(*file.lines.front().find("usage"), {"prompt_tokens"});
}

MeasuredRun read_usage_log(const RunFile& file) {
  MeasuredRun run;
  run.tool = "OpenAI usage log";
  bool has_times = false;
  for (const Json& line : file.lines) {
    const JsonView row(line, file.source);
    const JsonView usage = row.at("usage");
    MeasuredRequest request;
    const auto start =
        first_of(row, {"request_start_time", "startTime", "start_time", "timestamp", "created"}, moment_at);
    if (!start) row.fail("a time in created, timestamp or start_time");
    request.arrival_s = *start;
    request.input_tokens = tokens_at(usage, "prompt_tokens");
    request.output_tokens = usage.has("completion_tokens") ? tokens_at(usage, "completion_tokens") : 0;
    if (const auto details = usage.find("prompt_tokens_details")) {
      request.cached_tokens = count_at(*details, "cached_tokens");
    }
    const auto milliseconds = [](const JsonView& one, std::string_view key) { return duration_at(one, key, 1e-3); };
    request.ttft_s = first_of(row, {"ttft_ms", "time_to_first_token_ms"}, milliseconds);
    request.e2e_s = first_of(row, {"latency_ms", "duration_ms", "response_ms"}, milliseconds);
    if (const auto end = first_of(row, {"endTime", "end_time"}, moment_at); end && !request.e2e_s) {
      request.e2e_s = std::max(0.0, *end - *start);
    }
    has_times = has_times || request.has_times();
    if (run.model.empty()) run.model = text_at(row, "model");
    run.requests.push_back(std::move(request));
  }
  if (!has_times)
    run.notes.emplace_back("the log has no latencies: its requests can be used as a load, not as a measurement");
  return run;
}

bool is_sharegpt(const RunFile& file) {
  return file.json.kind() == Json::Kind::array && !file.json.items().empty() &&
         has_keys(file.json.items().front(), {"conversations"});
}

MeasuredRun read_sharegpt(const RunFile& file) {
  MeasuredRun run;
  run.tool = "ShareGPT";
  run.load.dataset = "sharegpt";
  for (const JsonView& row : file.view().items()) {
    const auto turns = row.find("conversations");
    if (!turns) continue;
    const std::vector<JsonView> said = turns->items();
    if (said.size() < 2) continue;
    MeasuredRequest request;
    const std::string prompt = said[0].at("value").string(), answer = said[1].at("value").string();
    TokenCounter* const counter = file.tokenizer;
    request.input_tokens = counter != nullptr ? counter->prompt_tokens(prompt) : estimated_tokens(prompt);
    request.output_tokens = counter != nullptr ? counter->answer_tokens(answer) : estimated_tokens(answer);
    run.requests.push_back(std::move(request));
  }
  if (run.requests.empty()) file.view().fail("conversations of at least two turns");
  run.notes.push_back(
      fmt::format("prompts and answers are the first two turns of each conversation; token counts are {}",
                  file.tokenizer != nullptr ? "those of the tokenizer" : "estimated as bytes / 4"));
  return run;
}

bool is_vllm_log(const RunFile& file) {
  for (const char* mark : {"vLLM API server version", "LLM engine (v", "GPU KV cache size:", "# GPU blocks:"}) {
    if (file.text.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

MeasuredRun read_vllm_log(const RunFile& file) {
  MeasuredRun run;
  run.tool = "vLLM log";
  run.engine = "vllm";
  std::optional<double> cache_tokens, blocks;
  const auto take = [&](std::string_view line, std::string_view key, const char* field) {
    const std::string_view text = stripped(between(line, fmt::format(" {}=", key), ",)}\r\n"));
    if (text.empty() || text == "None" || text == "auto" || run.deployment.find(field) != nullptr) return;
    if (text == "True" || text == "False") {
      run.deployment.set(field, text == "True");
    } else if (const auto whole = parse_integer(text)) {
      run.deployment.set(field, *whole);
    } else {
      run.deployment.set(field, text);
    }
  };
  for (const std::string_view line : split(file.text, "\n")) {
    if (const std::string_view version = between(line, "vLLM API server version ", " \r\n"); !version.empty()) {
      run.engine_version = version;
    }
    if (const std::string_view version = between(line, "LLM engine (v", ")"); !version.empty()) {
      run.engine_version = version;
      for (const auto& [key, field] :
           {std::pair("model", "model"), std::pair("tensor_parallel_size", "tensor_parallel_size"),
            std::pair("pipeline_parallel_size", "pipeline_parallel_size"),
            std::pair("data_parallel_size", "data_parallel_size"), std::pair("max_seq_len", "max_model_len"),
            std::pair("kv_cache_dtype", "kv_cache_dtype"), std::pair("enforce_eager", "enforce_eager"),
            std::pair("enable_prefix_caching", "enable_prefix_caching")}) {
        take(line, key, field);
      }
      const std::string_view model = stripped(between(line, "config: model=", ",\r\n"));
      if (!model.empty()) run.deployment.set("model", model);
    }
    if (const auto tokens = number_behind(line, "GPU KV cache size: ")) cache_tokens = tokens;
    if (const auto count = number_behind(line, "# GPU blocks: ")) blocks = count;
    for (const char* fact : {"Available KV cache memory: ", "Model loading took ", "Graph capturing finished in "}) {
      const size_t at = line.find(fact);
      if (at != std::string_view::npos) run.notes.push_back(printable(stripped(line.substr(at)), 120));
    }
  }
  constexpr double usual_block = 16;
  const Json* block = run.deployment.find("block_size");
  const double block_tokens = block != nullptr ? block->number() : usual_block;
  if (!blocks && cache_tokens) blocks = *cache_tokens / block_tokens;
  if (blocks && *blocks >= 1 && *blocks < 1e12) {
    run.deployment.set("num_gpu_blocks_override", static_cast<int64_t>(*blocks));
    if (cache_tokens) {
      run.notes.push_back(fmt::format("the KV cache holds {:.0f} tokens, assumed to be in blocks of {:.0f}",
                                      *cache_tokens, block_tokens));
    }
  }
  if (const Json* model = run.deployment.find("model")) run.model = model->string();
  return run;
}

}  // namespace foretoken
