// What readers of runs share.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serving/runs/measured_run.h"

namespace foretoken {

class TokenCounter;

// A file, looked at once: JSON where it is one document, JSON Lines where each line is one.
struct RunFile {
  std::string source;
  std::string_view text;
  Json json;                          // null = no JSON document
  std::vector<Json> lines;            // of JSON Lines; empty = none
  std::string header;                 // the content of a YAML file of the same name beside a table; empty = none
  TokenCounter* tokenizer = nullptr;  // for texts; none = their tokens are estimated

  JsonView view() const { return JsonView(json, source); }
};

inline constexpr double most_seconds_of_run = 1e10;
inline constexpr int64_t most_tokens_of_request = 1'000'000'000;

// Nothing for a key that is absent, null, or of another kind.
std::optional<double> number_at(const JsonView& object, std::string_view key);
std::optional<int64_t> count_at(const JsonView& object, std::string_view key);
std::string text_at(const JsonView& object, std::string_view key);
// InputError for one that is negative or endless; nothing for one that is absent or null.
std::optional<double> duration_at(const JsonView& object, std::string_view key, double seconds_per_unit = 1);
int64_t tokens_at(const JsonView& object, std::string_view key);  // must be there

bool has_keys(const Json& object, std::initializer_list<std::string_view> keys);

// Arrivals from the first on, in order.
void order_requests(MeasuredRun& run);

// The readers, one group a file.
bool is_vllm_bench(const RunFile& file);
MeasuredRun read_vllm_bench(const RunFile& file);
bool is_sglang_bench(const RunFile& file);
MeasuredRun read_sglang_bench(const RunFile& file);
bool is_guidellm(const RunFile& file);
MeasuredRun read_guidellm(const RunFile& file);
bool is_aiperf_records(const RunFile& file);
MeasuredRun read_aiperf_records(const RunFile& file);
bool is_genai_perf(const RunFile& file);
MeasuredRun read_genai_perf(const RunFile& file);
bool is_inference_perf_requests(const RunFile& file);
MeasuredRun read_inference_perf_requests(const RunFile& file);
bool is_inference_perf(const RunFile& file);
MeasuredRun read_inference_perf(const RunFile& file);
bool is_llmperf(const RunFile& file);
MeasuredRun read_llmperf(const RunFile& file);
bool is_llmperf_responses(const RunFile& file);
MeasuredRun read_llmperf_responses(const RunFile& file);
bool is_blis_trace(const RunFile& file);
MeasuredRun read_blis_trace(const RunFile& file);
bool is_run_requests(const RunFile& file);
MeasuredRun read_requests_table(const RunFile& file);
bool is_mlperf_summary(const RunFile& file);
MeasuredRun read_mlperf_summary(const RunFile& file);
bool is_prometheus_range(const RunFile& file);
MeasuredRun read_prometheus_range(const RunFile& file);
bool is_usage_log(const RunFile& file);
MeasuredRun read_usage_log(const RunFile& file);
bool is_sharegpt(const RunFile& file);
MeasuredRun read_sharegpt(const RunFile& file);
bool is_vllm_log(const RunFile& file);
MeasuredRun read_vllm_log(const RunFile& file);

}  // namespace foretoken
