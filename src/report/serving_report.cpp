#include "report/serving_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t width = 50;

struct LatencyMetric {
  std::string_view name;    // what users type, and part of the JSON keys
  std::string_view label;   // in the table
  std::string_view header;  // of its part of the table
  LatencySummary ServingMetrics::*summary;
};
constexpr LatencyMetric latency_metrics[] = {
    {"ttft", "TTFT", "Time to First Token", &ServingMetrics::ttft},
    {"tpot", "TPOT", "Time per Output Token (excl. 1st token)", &ServingMetrics::tpot},
    {"itl", "ITL", "Inter-token Latency", &ServingMetrics::itl},
    {"e2el", "E2EL", "End-to-end Latency", &ServingMetrics::e2el},
};

// 99 -> "99", 99.9 -> "99.9", as vLLM writes them.
std::string percentile_text(double percentile) {
  return number_text(percentile);
}

std::string line(const std::string& label, int64_t value) {
  return fmt::format("{:<40} {:<10}\n", label, value);
}

std::string line(const std::string& label, double value) {
  return fmt::format("{:<40} {:<10.2f}\n", label, value);
}

std::string latency_part(const LatencyMetric& metric, const LatencySummary& summary,
                         const std::vector<double>& percentiles) {
  std::string text = fmt::format("{:-^{}}\n", metric.header, width);
  text += line(fmt::format("Mean {} (ms):", metric.label), summary.mean_ms);
  text += line(fmt::format("Median {} (ms):", metric.label), summary.median_ms);
  for (size_t i = 0; i < percentiles.size(); ++i) {
    text += line(fmt::format("P{} {} (ms):", percentile_text(percentiles[i]), metric.label), summary.percentiles_ms[i]);
  }
  return text;
}

std::string interval_line(const ServingRun& run, const char* label, double (*number)(const ServingMetrics&)) {
  const Headline headline = run.headline(number);
  return fmt::format("{:<28} {:>10.2f}   90% interval {:.2f} to {:.2f}\n", label, headline.value, headline.low,
                     headline.high);
}

struct NamedHeadline {
  const char* key;
  const char* label;
  double (*number)(const ServingMetrics&);
};
constexpr NamedHeadline headlines[] = {
    {"mean_ttft_ms", "Mean TTFT (ms)", [](const ServingMetrics& m) { return m.ttft.mean_ms; }},
    {"mean_tpot_ms", "Mean TPOT (ms)", [](const ServingMetrics& m) { return m.tpot.mean_ms; }},
    {"mean_itl_ms", "Mean ITL (ms)", [](const ServingMetrics& m) { return m.itl.mean_ms; }},
    {"mean_e2el_ms", "Mean E2EL (ms)", [](const ServingMetrics& m) { return m.e2el.mean_ms; }},
    {"request_throughput", "Requests/s", [](const ServingMetrics& m) { return m.request_throughput; }},
    {"output_throughput", "Output tokens/s", [](const ServingMetrics& m) { return m.output_throughput; }},
};

double cached_share(const ServingMetrics& metrics) {
  if (metrics.input_tokens == 0) return 0;
  return static_cast<double>(metrics.cached_tokens) / static_cast<double>(metrics.input_tokens);
}

// Share of the blocks of all replicas at the fullest interval.
double peak_kv_use(const ServingReport& report) {
  double most = 0;
  for (const TimePoint& point : report.run.series) most = std::max(most, point.kv_blocks_used);
  const auto blocks = static_cast<double>(report.kv_blocks * report.replicas);
  return blocks > 0 ? most / blocks : 0;
}

Json series_json(const ServingRun& run) {
  Json points = Json::array();
  for (const TimePoint& point : run.series) {
    points.push(Json::object({{"begin_s", point.begin_s},
                              {"running", point.running},
                              {"waiting", point.waiting},
                              {"kv_blocks_used", point.kv_blocks_used},
                              {"prefill_tokens_per_s", point.prefill_tokens_per_s},
                              {"decode_tokens_per_s", point.decode_tokens_per_s}}));
  }
  return Json::object({{"interval_s", run.interval_s}, {"points", std::move(points)}});
}

Json rate_json(double rate) {
  return std::isfinite(rate) ? Json(rate) : Json("inf");
}

}  // namespace

std::vector<std::string> latency_metric_names() {
  std::vector<std::string> names;
  for (const LatencyMetric& metric : latency_metrics) names.emplace_back(metric.name);
  return names;
}

std::string serving_text(const ServingReport& report) {
  const ServingMetrics& metrics = report.run.metrics;
  std::string text = fmt::format("{:=^{}}\n", " Serving Benchmark Result ", width);
  text += line("Successful requests:", metrics.completed);
  text += line("Failed requests:", metrics.rejected);
  if (report.max_concurrency) text += line("Maximum request concurrency:", *report.max_concurrency);
  if (std::isfinite(report.request_rate)) text += line("Request rate configured (RPS):", report.request_rate);
  text += line("Benchmark duration (s):", metrics.duration_s);
  text += line("Total input tokens:", metrics.input_tokens);
  text += line("Total generated tokens:", metrics.output_tokens);
  text += line("Request throughput (req/s):", metrics.request_throughput);
  if (metrics.goodput) text += line("Request goodput (req/s):", *metrics.goodput);
  text += line("Output token throughput (tok/s):", metrics.output_throughput);
  text += line("Peak output token throughput (tok/s):", metrics.peak_output_tokens_per_s);
  text += line("Peak concurrent requests:", static_cast<double>(metrics.peak_concurrent_requests));
  text += line("Total token throughput (tok/s):", metrics.total_token_throughput);
  for (const LatencyMetric& metric : latency_metrics) {
    const auto& shown = report.percentile_metrics;
    if (std::find(shown.begin(), shown.end(), metric.name) == shown.end()) continue;
    text += latency_part(metric, metrics.*metric.summary, report.percentiles);
  }
  text += fmt::format("{:=^{}}\n", "", width);

  text += fmt::format("\n{} on {}{} ({} scheduler)\n", report.model,
                      report.devices > 1 ? fmt::format("{} x ", report.devices) : "", report.device, report.scheduler);
  if (!report.run.at_bounds.empty() || !report.run.other_seeds.empty()) {
    for (const NamedHeadline& headline : headlines) {
      text += interval_line(report.run, headline.label, headline.number);
    }
  }
  text += fmt::format("{:<28} {:>10}   of {} blocks of {} tokens; fullest {:.0f}%\n", "KV cache", "", report.kv_blocks,
                      report.block_size, 100 * peak_kv_use(report));
  text += fmt::format("{:<28} {:>10}\n", "Preemptions", metrics.preemptions);
  text += fmt::format("{:<28} {:>9.1f}%   of prompt tokens\n", "Prefix cache hits", 100 * cached_share(metrics));
  text += fmt::format("{:<28} {:>10.2f}\n", "Mean time in queue (ms)", metrics.queue.mean_ms);
  if (!metrics.exact) text += "Percentiles are within 0.05%: there were too many values to keep each.\n";
  if (metrics.rejected > 0) {
    text += "Failed requests have no tokens, or a prompt beyond the model's length or the KV cache.\n";
  }
  return text;
}

Json vllm_result_json(const ServingReport& report) {
  const ServingMetrics& metrics = report.run.metrics;
  Json result = Json::object({{"date", ""},
                              {"backend", "foretoken"},
                              {"label", report.scheduler},
                              {"model_id", report.model},
                              {"tokenizer_id", report.model},
                              {"num_prompts", report.num_prompts},
                              {"request_rate", rate_json(report.request_rate)},
                              {"burstiness", report.burstiness},
                              {"max_concurrency", report.max_concurrency ? Json(*report.max_concurrency) : Json()},
                              {"duration", metrics.duration_s},
                              {"completed", metrics.completed},
                              {"failed", metrics.rejected},
                              {"total_input_tokens", metrics.input_tokens},
                              {"total_output_tokens", metrics.output_tokens},
                              {"request_throughput", metrics.request_throughput},
                              {"request_goodput", metrics.goodput ? Json(*metrics.goodput) : Json()},
                              {"output_throughput", metrics.output_throughput},
                              {"total_token_throughput", metrics.total_token_throughput},
                              {"max_output_tokens_per_s", metrics.peak_output_tokens_per_s},
                              {"max_concurrent_requests", metrics.peak_concurrent_requests}});
  for (const LatencyMetric& metric : latency_metrics) {
    const LatencySummary& summary = metrics.*metric.summary;
    result.set(fmt::format("mean_{}_ms", metric.name), summary.mean_ms);
    result.set(fmt::format("median_{}_ms", metric.name), summary.median_ms);
    result.set(fmt::format("std_{}_ms", metric.name), summary.deviation_ms);
    for (size_t i = 0; i < report.percentiles.size(); ++i) {
      result.set(fmt::format("p{}_{}_ms", percentile_text(report.percentiles[i]), metric.name),
                 summary.percentiles_ms[i]);
    }
  }
  return result;
}

Json serving_json(const ServingReport& report) {
  Json result = vllm_result_json(report);
  Json intervals = Json::object();
  for (const NamedHeadline& named : headlines) {
    const Headline headline = report.run.headline(named.number);
    intervals.set(named.key, Json::object({{"value", headline.value}, {"low", headline.low}, {"high", headline.high}}));
  }
  result.set("device", report.device)
      .set("devices", report.devices)
      .set("replicas", report.replicas)
      .set("intervals", std::move(intervals))
      .set("preemptions", report.run.metrics.preemptions)
      .set("prefix_cache_hit_share", cached_share(report.run.metrics))
      .set("mean_queue_ms", report.run.metrics.queue.mean_ms)
      .set("kv_blocks", report.kv_blocks)
      .set("block_size", report.block_size)
      .set("peak_kv_use", peak_kv_use(report))
      .set("steps", report.run.totals.steps)
      .set("scheduling_decisions", report.run.totals.decisions)
      .set("percentiles_exact", report.run.metrics.exact)
      .set("time_series", series_json(report.run));
  return result;
}

}  // namespace foretoken
