#include "serving/run_formats/run_formats.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json_lines.h"
#include "base/text.h"
#include "serving/run_formats/format_parts.h"
#include "serving/runs/run_folder.h"

namespace foretoken {
namespace {

constexpr size_t most_file_bytes = size_t{1} << 30;

// The first that recognizes a file reads it.
constexpr RunFormat listed_formats[] = {
    {"sglang.bench_serving", "results of SGLang's benchmark, one run per line", is_sglang_bench, read_sglang_bench},
    {"vllm bench serve", "saved results of vLLM's benchmark, detailed or not", is_vllm_bench, read_vllm_bench},
    {"GuideLLM", "JSON report", is_guidellm, read_guidellm},
    {"AIPerf records", "profile_export.jsonl", is_aiperf_records, read_aiperf_records},
    {"genai-perf, AIPerf", "profile_export_genai_perf.json, profile_export_aiperf.json", is_genai_perf,
     read_genai_perf},
    {"inference-perf requests", "per_request_lifecycle_metrics.json", is_inference_perf_requests,
     read_inference_perf_requests},
    {"inference-perf", "summary_lifecycle_metrics.json or the file of one stage", is_inference_perf,
     read_inference_perf},
    {"LLMPerf", "summary", is_llmperf, read_llmperf},
    {"LLMPerf responses", "individual responses", is_llmperf_responses, read_llmperf_responses},
    {"BLIS TraceV2", "table of requests, next to its header file", is_blis_trace, read_blis_trace},
    {"requests.csv", "table of a run folder", is_run_requests, read_requests_table},
    {"MLPerf LoadGen", "mlperf_log_summary.txt", is_mlperf_summary, read_mlperf_summary},
    {"Prometheus range", "result of /api/v1/query_range with metrics of vLLM or SGLang", is_prometheus_range,
     read_prometheus_range},
    {"OpenAI usage log", "one API response per line, with created and usage", is_usage_log, read_usage_log},
    {"ShareGPT", "conversations; token counts are estimated unless a tokenizer file is given", is_sharegpt,
     read_sharegpt},
    {"vLLM log", "startup log of vLLM", is_vllm_log, read_vllm_log},
};

std::string_view without_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

// One document, or one for each line.
void parse_json_of(RunFile& file) {
  const std::string_view content = without_space(file.text);
  if (content.empty() || (content.front() != '{' && content.front() != '[')) return;
  // Lines of objects: the first line is a whole document, and there are more.
  const size_t line_end = content.find('\n');
  const bool may_be_lines = content.front() == '{' && line_end != std::string_view::npos &&
                            without_space(content.substr(line_end)).starts_with('{');
  if (!may_be_lines) {
    file.json = parse_json(content, file.source);
    return;
  }
  JsonLinesReader lines = JsonLinesReader::from_text(std::string(content), file.source);
  while (std::optional<Json> line = lines.next()) file.lines.push_back(std::move(*line));
}

}  // namespace

std::span<const RunFormat> run_formats() {
  return listed_formats;
}

MeasuredRun parse_run(std::string_view text, const std::string& source, const std::string& header,
                      TokenCounter* tokenizer) {
  RunFile file{.source = source, .text = text, .json = {}, .lines = {}, .header = header, .tokenizer = tokenizer};
  parse_json_of(file);
  // A single line is both.
  if (file.lines.empty() && file.json.kind() == Json::Kind::object) file.lines.push_back(file.json);
  for (const RunFormat& format : listed_formats) {
    if (!format.recognizes(file)) continue;
    MeasuredRun run = format.read(file);
    if (run.name.empty()) run.name = std::filesystem::path(source).stem().string();
    order_requests(run);
    return run;
  }
  const std::string begin = printable(without_space(text).substr(0, 60));
  std::string names;
  for (const RunFormat& format : listed_formats) names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  throw InputError({.source = source,
                    .value = begin.empty() ? "an empty file" : begin,
                    .expected = fmt::format("a run folder, or a file in one of these formats: {}", names)});
}

MeasuredRun read_run(const std::filesystem::path& path, TokenCounter* tokenizer) {
  if (std::filesystem::is_directory(path) || path.filename() == "run.json") return read_run_folder(path);
  const std::string text = read_file(path, most_file_bytes);
  std::string header;
  for (const char* extension : {".yaml", ".yml"}) {
    std::filesystem::path beside = path;
    beside.replace_extension(extension);
    std::error_code none;
    if (header.empty() && beside != path && std::filesystem::is_regular_file(beside, none)) {
      header = read_file(beside, most_file_bytes);
    }
  }
  return parse_run(text, path.string(), header, tokenizer);
}

void complete_run(MeasuredRun& run, MeasuredRun more) {
  const auto fill = [](auto& own, auto& other, bool is_empty) {
    if (is_empty) own = std::move(other);
  };
  for (std::string MeasuredRun::*field : {&MeasuredRun::engine, &MeasuredRun::engine_version, &MeasuredRun::model,
                                          &MeasuredRun::device, &MeasuredRun::started}) {
    fill(run.*field, more.*field, (run.*field).empty());
  }
  fill(run.seconds, more.seconds, !run.seconds);
  fill(run.requests, more.requests, run.requests.empty());
  fill(run.samples, more.samples, run.samples.empty());
  fill(run.stages, more.stages, run.stages.empty());
  fill(run.summary, more.summary, run.summary.is_empty());
  for (const auto& [key, value] : more.deployment.members()) {
    if (run.deployment.find(key) == nullptr) run.deployment.set(key, value);
  }
  run.notes.insert(run.notes.end(), more.notes.begin(), more.notes.end());
}

}  // namespace foretoken
