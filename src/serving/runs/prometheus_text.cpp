#include "serving/runs/prometheus_text.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

struct MetricName {
  std::string_view name;
  std::optional<double> MetricsSample::*field;
};
constexpr MetricName metric_names[] = {
    {"vllm:num_requests_running", &MetricsSample::running},
    {"vllm:num_requests_waiting", &MetricsSample::waiting},
    {"vllm:kv_cache_usage_perc", &MetricsSample::kv_usage},
    {"vllm:gpu_cache_usage_perc", &MetricsSample::kv_usage},
    {"vllm:prefix_cache_queries_total", &MetricsSample::prefix_queries},
    {"vllm:prefix_cache_queries", &MetricsSample::prefix_queries},
    {"vllm:gpu_prefix_cache_queries_total", &MetricsSample::prefix_queries},
    {"vllm:prefix_cache_hits_total", &MetricsSample::prefix_hits},
    {"vllm:prefix_cache_hits", &MetricsSample::prefix_hits},
    {"vllm:gpu_prefix_cache_hits_total", &MetricsSample::prefix_hits},
    {"vllm:num_preemptions_total", &MetricsSample::preemptions},
    {"vllm:prompt_tokens_total", &MetricsSample::prompt_tokens},
    {"vllm:generation_tokens_total", &MetricsSample::output_tokens},
    {"sglang:num_running_reqs", &MetricsSample::running},
    {"sglang:num_queue_reqs", &MetricsSample::waiting},
    {"sglang:token_usage", &MetricsSample::kv_usage},
    {"sglang:cached_tokens_total", &MetricsSample::prefix_hits},
    {"sglang:num_retracted_requests_total", &MetricsSample::preemptions},
    {"sglang:prompt_tokens_total", &MetricsSample::prompt_tokens},
    {"sglang:generation_tokens_total", &MetricsSample::output_tokens},
};

}  // namespace

std::optional<double> MetricsSample::*metrics_sample_field(std::string_view name) {
  for (const MetricName& one : metric_names) {
    if (one.name == name) return one.field;
  }
  return nullptr;
}

std::optional<MetricsSample> parse_prometheus_text(std::string_view text) {
  MetricsSample sample;
  bool is_known = false;
  double engines_with_usage = 0;
  int number = 0;
  for (const std::string_view line : split(text, "\n")) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const size_t name_end = line.find_first_of("{ ");
    if (name_end == std::string_view::npos) continue;
    const auto field = metrics_sample_field(line.substr(0, name_end));
    if (field == nullptr) continue;
    // Label values may hold spaces and braces; the value is behind the last brace.
    const size_t labels_end = line[name_end] == '{' ? line.rfind('}') : name_end - 1;
    if (labels_end == std::string_view::npos || labels_end + 2 >= line.size() + 1) continue;
    const std::vector<std::string_view> words = split_words(line.substr(labels_end + 1), " ");
    const std::optional<double> value = words.empty() ? std::nullopt : parse_number(words.front());
    if (!value) {
      if (!words.empty() && (words.front() == "NaN" || words.front() == "+Inf")) continue;
      throw InputError({.source = "/metrics",
                        .line = number,
                        .value = printable(line),
                        .expected = "a metric name, its labels and a number"});
    }
    is_known = true;
    if (field == &MetricsSample::kv_usage) ++engines_with_usage;
    sample.*field = (sample.*field).value_or(0) + *value;
  }
  if (!is_known) return std::nullopt;
  if (sample.kv_usage) *sample.kv_usage /= engines_with_usage;
  return sample;
}

std::string prometheus_engine(std::string_view text) {
  for (const std::string_view engine : {"vllm", "sglang"}) {
    if (text.find("\n" + std::string(engine) + ":") != std::string_view::npos) return std::string(engine);
  }
  return "";
}

}  // namespace foretoken
