#include "app/endpoint/prometheus.h"

#include <functional>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// Quotes, backslashes and line ends in the value of a label are escaped.
std::string label_value(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == '"') value += '\\';
    value += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return value;
}

class PrometheusText {
 public:
  PrometheusText(const EngineMetrics& metrics, const std::deque<Replica>& replicas, const std::string& model_name)
      : engines_(&metrics.engines()) {
    for (size_t i = 0; i < engines_->size(); ++i) {
      labels_.push_back(fmt::format("engine=\"{}\",model_name=\"{}\"", i, label_value(model_name)));
      loads_.push_back(replicas[i].load());
    }
  }

  template <class Value>
  void gauge(std::string_view name, std::string_view help, const Value& value) {
    describe(name, help, "gauge");
    for (size_t i = 0; i < loads_.size(); ++i) sample(name, labels_[i], value(loads_[i]));
  }

  template <class Value>
  void counter(std::string_view name, std::string_view help, const Value& value) {
    describe(name, help, "counter");
    for (size_t i = 0; i < labels_.size(); ++i) sample(name, labels_[i], value((*engines_)[i]));
  }

  void success(std::string_view name, std::string_view help) {
    describe(name, help, "counter");
    for (size_t i = 0; i < labels_.size(); ++i) {
      for (size_t reason = 0; reason < finish_reasons; ++reason) {
        sample(
            name,
            fmt::format("{},finished_reason=\"{}\"", labels_[i], finish_reason_text(static_cast<FinishReason>(reason))),
            (*engines_)[i].ended[reason]);
      }
    }
  }

  void histogram(std::string_view name, std::string_view help, Histogram EngineCounts::*which) {
    describe(name, help, "histogram");
    for (size_t i = 0; i < labels_.size(); ++i) {
      const Histogram& histogram = (*engines_)[i].*which;
      const std::string bucket = fmt::format("{}_bucket", name);
      int64_t below = 0;
      for (size_t b = 0; b < histogram.bounds().size(); ++b) {
        below += histogram.counts()[b];
        sample(bucket, fmt::format("{},le=\"{}\"", labels_[i], bound_text(histogram.bounds()[b])), below);
      }
      sample(bucket, fmt::format("{},le=\"+Inf\"", labels_[i]), histogram.count());
      sample(fmt::format("{}_sum", name), labels_[i], histogram.sum());
      sample(fmt::format("{}_count", name), labels_[i], histogram.count());
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void describe(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  template <class Value>
  void sample(std::string_view name, std::string_view labels, Value value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name, labels, value);
  }
  // As Python's client prints them: 1.0, 0.25.
  static std::string bound_text(double bound) {
    const std::string text = fmt::format("{}", bound);
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }

  const std::vector<EngineCounts>* engines_;
  std::vector<std::string> labels_;
  std::vector<ReplicaLoad> loads_;
  std::string text_;
};

}  // namespace

std::string prometheus_text(const EngineMetrics& metrics, const std::deque<Replica>& replicas,
                            const std::string& model_name) {
  ensure(metrics.engines().size() == replicas.size(), "every engine is counted");
  PrometheusText text(metrics, replicas, model_name);
  text.gauge("vllm:num_requests_running", "Requests in the batches of the engine.",
             [](const ReplicaLoad& load) { return load.running; });
  text.gauge("vllm:num_requests_waiting", "Requests that wait to be processed.",
             [](const ReplicaLoad& load) { return load.waiting; });
  text.gauge("vllm:kv_cache_usage_perc", "KV cache in use; 1 means all of it.", [](const ReplicaLoad& load) {
    return load.blocks > 0 ? static_cast<double>(load.blocks_used) / static_cast<double>(load.blocks) : 0.0;
  });
  text.counter("vllm:prompt_tokens_total", "Prompt tokens processed, with those found in the prefix cache.",
               [](const EngineCounts& counts) { return counts.prompt_tokens; });
  text.counter("vllm:prompt_tokens_cached_total", "Prompt tokens found in the prefix cache.",
               [](const EngineCounts& counts) { return counts.cached_tokens; });
  text.counter("vllm:generation_tokens_total", "Tokens generated.",
               [](const EngineCounts& counts) { return counts.generation_tokens; });
  text.counter("vllm:num_preemptions_total", "Preemptions of requests that have ended.",
               [](const EngineCounts& counts) { return counts.preemptions; });
  text.counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.",
               [](const EngineCounts& counts) { return counts.queried_tokens; });
  text.counter("vllm:prefix_cache_hits_total", "Tokens found there.",
               [](const EngineCounts& counts) { return counts.cached_tokens; });
  text.success("vllm:request_success_total", "Requests that have ended, by reason.");
  text.histogram("vllm:time_to_first_token_seconds", "Arrival to first token.", &EngineCounts::ttft);
  text.histogram("vllm:inter_token_latency_seconds", "Gaps between outputs of a request.", &EngineCounts::itl);
  text.histogram("vllm:request_time_per_output_token_seconds", "Mean gap between tokens of a request.",
                 &EngineCounts::tpot);
  text.histogram("vllm:e2e_request_latency_seconds", "Arrival to last token.", &EngineCounts::e2el);
  text.histogram("vllm:request_queue_time_seconds", "Arrival to first step.", &EngineCounts::queue);
  text.histogram("vllm:request_inference_time_seconds", "First step to last token.", &EngineCounts::inference);
  text.histogram("vllm:request_prefill_time_seconds", "First step to first token.", &EngineCounts::prefill);
  text.histogram("vllm:request_decode_time_seconds", "First token to last token.", &EngineCounts::decode);
  text.histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", &EngineCounts::prompt);
  text.histogram("vllm:request_generation_tokens", "Tokens generated for a request.", &EngineCounts::generation);
  text.histogram("vllm:request_params_max_tokens", "max_tokens of a request.", &EngineCounts::max_tokens);
  text.histogram("vllm:request_prefill_kv_computed_tokens", "Prompt tokens that were not in the prefix cache.",
                 &EngineCounts::computed_prompt);
  text.histogram("vllm:iteration_tokens_total", "Tokens of an engine step.", &EngineCounts::step);
  return text.take();
}

}  // namespace foretoken
