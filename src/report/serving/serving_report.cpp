#include "report/serving/serving_report.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/field_braces.h"
#include "base/kinds.h"
#include "base/simulated_time.h"
#include "base/text.h"
#include "report/parts/latency_json.h"
#include "report/parts/source_text.h"
#include "report/parts/table.h"
#include "report/serving/kv_tier_report.h"
#include "report/serving/serving_series.h"

namespace foretoken {
namespace {

constexpr size_t table_width = 50;

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

// Embeddings and scores have no output tokens: vLLM then reports the end-to-end latency alone.
bool generates(const ServingMetrics& metrics) {
  return metrics.output_tokens > 0 || metrics.completed == 0;
}

bool has_values(const LatencyMetric& metric, const ServingMetrics& metrics) {
  return generates(metrics) || metric.name == "e2el";
}

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
  std::string text = fmt::format("{:-^{}}\n", metric.header, table_width);
  text += line(fmt::format("Mean {} (ms):", metric.label), summary.mean_ms);
  text += line(fmt::format("Median {} (ms):", metric.label), summary.median_ms);
  for (size_t i = 0; i < percentiles.size(); ++i) {
    text += line(fmt::format("P{} {} (ms):", percentile_text(percentiles[i]), metric.label), summary.percentiles_ms[i]);
  }
  return text;
}

// As vLLM prints it below the latencies of an engine that drafts.
std::string speculation_part(const SpeculationCounts& counts) {
  std::string text = fmt::format("{:-^{}}\n", "Speculative Decoding", table_width);
  text += line("Acceptance rate (%):", 100 * counts.acceptance_rate());
  text += line("Acceptance length:", counts.acceptance_length());
  text += line("Drafts:", counts.drafts);
  text += line("Draft tokens:", counts.draft_tokens);
  text += line("Accepted tokens:", counts.accepted_tokens);
  text += "Per-position acceptance (%):\n";
  for (size_t i = 0; i < counts.accepted_by_position.size(); ++i) {
    text += line(fmt::format("  Position {}:", i), 100 * counts.rate_at_position(i));
  }
  return text;
}

void add_speculation(Json& result, const SpeculationCounts& counts) {
  Json positions = Json::array();
  for (size_t i = 0; i < counts.accepted_by_position.size(); ++i) positions.push(counts.rate_at_position(i));
  result.set("spec_decode_acceptance_rate", 100 * counts.acceptance_rate())
      .set("spec_decode_acceptance_length", counts.acceptance_length())
      .set("spec_decode_num_drafts", counts.drafts)
      .set("spec_decode_draft_tokens", counts.draft_tokens)
      .set("spec_decode_accepted_tokens", counts.accepted_tokens)
      .set("spec_decode_per_position_acceptance_rates", std::move(positions));
}

// Steps that denoise a block count as verifications: one token of its own, the rest of the block beside it.
std::string diffusion_part(const BlockDiffusion& diffusion, const SpeculationCounts& counts) {
  std::string text = fmt::format("{:-^{}}\n", "Block Diffusion", table_width);
  text += line("Tokens per block:", diffusion.block_tokens);
  text += line("Steps per block:", diffusion.steps);
  text += line("Denoising steps of all sequences:", counts.drafts);
  text += line("Tokens finalized per step:", counts.acceptance_length());
  return text;
}

Json diffusion_json(const BlockDiffusion& diffusion, const SpeculationCounts& counts) {
  return Json::object({{"block_tokens", diffusion.block_tokens},
                       {"steps", diffusion.steps},
                       {"denoising_steps", counts.drafts},
                       {"tokens_settled_in_a_step", counts.acceptance_length()}});
}

std::string interval_line(const std::string& label, const Headline& headline) {
  return fmt::format("{:<28} {:>10.2f}   90% interval {:.2f} to {:.2f}\n", label, headline.value, headline.low,
                     headline.high);
}

struct NamedHeadline {
  std::string key;
  std::string label;
  bool in_text = false;  // else only in JSON
  std::function<double(const ServingMetrics&)> number;
};

// Every number of the table that step times decide.
std::vector<NamedHeadline> headlines(const ServingReport& report) {
  std::vector<NamedHeadline> all;
  for (const LatencyMetric& metric : latency_metrics) {
    const auto part = [&](const std::string& name, const std::string& title, bool in_text,
                          std::function<double(const LatencySummary&)> number) {
      all.push_back({.key = fmt::format("{}_{}_ms", name, metric.name),
                     .label = fmt::format("{} {} (ms)", title, metric.label),
                     .in_text = in_text && has_values(metric, report.run.metrics),
                     .number = [summary = metric.summary, number = std::move(number)](const ServingMetrics& metrics) {
                       return number(metrics.*summary);
                     }});
    };
    part("mean", "Mean", true, [](const LatencySummary& summary) { return summary.mean_ms; });
    part("median", "Median", false, [](const LatencySummary& summary) { return summary.median_ms; });
    for (size_t i = 0; i < report.percentiles.size(); ++i) {
      const std::string percentile = percentile_text(report.percentiles[i]);
      part("p" + percentile, "P" + percentile, false,
           [i](const LatencySummary& summary) { return summary.percentiles_ms[i]; });
    }
  }
  all.push_back({"request_throughput", "Requests/s", true, [](const auto& m) { return m.request_throughput; }});
  if (report.run.metrics.goodput) {
    all.push_back(
        {"request_goodput", "Goodput (requests/s)", true, [](const auto& m) { return m.goodput.value_or(0); }});
  }
  all.push_back({"output_throughput", "Output tokens/s", report.run.metrics.output_tokens > 0,
                 [](const auto& m) { return m.output_throughput; }});
  all.push_back(
      {"total_token_throughput", "All tokens/s", false, [](const auto& m) { return m.total_token_throughput; }});
  return all;
}

double cached_share(const ServingMetrics& metrics) {
  if (metrics.input_tokens == 0) return 0;
  return static_cast<double>(metrics.cached_tokens) / static_cast<double>(metrics.input_tokens);
}

Json link_json(const LinkTraffic& link) {
  return Json::object({{"link", link.link},
                       {"between_nodes", link.between_nodes},
                       {"bandwidth_bytes_per_second", link.bandwidth},
                       {"bytes_per_token", link.bytes}});
}

Json links_json(const std::vector<LinkTraffic>& links) {
  Json list = Json::array();
  for (const LinkTraffic& link : links) list.push(link_json(link));
  return list;
}

Json replicas_json(const ServingReport& report) {
  Json groups = Json::array();
  for (const ReplicaSummary& group : report.replicas) {
    Json json = Json::object({{"device", group.device},
                              {"scheduler", group.scheduler},
                              {"replicas", group.count},
                              {"devices_each", group.devices_each},
                              {"kv_blocks", group.kv_blocks},
                              {"block_size", group.block_size}});
    if (!group.release.empty()) json.set("engine", group.release);
    if (!group.model.empty()) json.set("model", group.model);
    if (!group.pool.empty()) json.set("pool", group.pool);
    if (!group.links.empty()) json.set("links", links_json(group.links));
    if (group.kv_transfer) json.set("kv_transfer", link_json(*group.kv_transfer));
    if (group.sources) json.set("sources", to_json(*group.sources));
    groups.push(std::move(json));
  }
  return groups;
}

std::string replica_lines(const ServingReport& report) {
  std::string text;
  for (const ReplicaSummary& group : report.replicas) {
    const int64_t devices = group.count * group.devices_each;
    text +=
        fmt::format("{}{} on {}{} ({}{} scheduler{})\n",
                    group.pool.empty() ? "" : group.pool + " pool: ", group.model.empty() ? report.model : group.model,
                    devices > 1 ? fmt::format("{} x ", devices) : "", group.device,
                    group.release.empty() ? "" : group.release + ", ", group.scheduler,
                    group.count > 1 ? fmt::format(", {} replicas", group.count) : "");
    for (const LinkTraffic& link : group.links) {
      text += fmt::format("  links: each GPU sends {} per token over {}{}\n", bytes_text(link.bytes), link.link,
                          link.between_nodes ? " between nodes" : "");
    }
    if (group.kv_transfer) {
      const LinkTraffic& link = *group.kv_transfer;
      text += wrap_lines(
          fmt::format("  KV transfer: each GPU sends {} per prompt token to the decode pool over {}{}, {:.3g} GB/s\n",
                      bytes_text(link.bytes), link.link, link.between_nodes ? " between nodes" : "",
                      link.bandwidth / giga),
          page_width(), 2);
    }
    if (group.sources) {
      text += wrap_lines(fmt::format("  sources: {}\n", source_text(*group.sources, "a typical step's time")),
                         page_width(), 2);
    }
  }
  return text;
}

std::string priorities_text(const ServingReport& report) {
  const double highest = *std::max_element(report.percentiles.begin(), report.percentiles.end());
  const size_t at = static_cast<size_t>(std::find(report.percentiles.begin(), report.percentiles.end(), highest) -
                                        report.percentiles.begin());
  const std::string title = fmt::format("P{} TTFT (ms)", percentile_text(highest));
  Table table({{"priority"}, {"requests"}, {"mean TTFT (ms)"}, {title}, {"mean TPOT (ms)"}, {"mean E2EL (ms)"}});
  for (const PriorityLatencies& one : report.priorities) {
    table.add({fmt::format("{}", one.priority), fmt::format("{}", one.completed),
               fmt::format("{:.2f}", one.ttft.mean_ms), fmt::format("{:.2f}", one.ttft.percentiles_ms[at]),
               fmt::format("{:.2f}", one.tpot.mean_ms), fmt::format("{:.2f}", one.e2el.mean_ms)});
  }
  return "\n" + table.text();
}

Json priorities_json(const ServingReport& report) {
  Json all = Json::array();
  for (const PriorityLatencies& one : report.priorities) {
    Json json = Json::object({{"priority", int64_t{one.priority}}, {"completed", one.completed}});
    set_latencies(json, "ttft", one.ttft, report.percentiles);
    set_latencies(json, "tpot", one.tpot, report.percentiles);
    set_latencies(json, "e2el", one.e2el, report.percentiles);
    all.push(std::move(json));
  }
  return all;
}

// "3 with no tokens, 1 with ..."
std::string failure_reasons(const ServingMetrics& metrics) {
  std::string reasons;
  for (size_t i = 0; i < metrics.rejected_for.size(); ++i) {
    if (metrics.rejected_for[i] == 0) continue;
    reasons += fmt::format("{}{} with {}", reasons.empty() ? "" : ", ", metrics.rejected_for[i],
                           rejection_text(static_cast<Rejection>(i)));
  }
  return reasons;
}

Json intervals_json(const ServingReport& report) {
  Json intervals = Json::object();
  for (const NamedHeadline& named : headlines(report)) {
    const Headline headline = report.run.headline(named.number);
    intervals.set(named.key, Json::object({{"value", headline.value}, {"low", headline.low}, {"high", headline.high}}));
  }
  return intervals;
}

Json rate_json(double rate) {
  return std::isfinite(rate) ? Json(rate) : Json("inf");
}

}  // namespace

std::vector<std::string> latency_metric_names() {
  return kind_names(latency_metrics);
}

int64_t ServingReport::replica_count() const {
  int64_t sum = 0;
  for (const ReplicaSummary& group : replicas) sum += group.count;
  return sum;
}

int64_t ServingReport::devices() const {
  int64_t sum = 0;
  for (const ReplicaSummary& group : replicas) sum += group.shares_device ? 0 : group.count * group.devices_each;
  return sum;
}

double ServingReport::peak_kv_use() const {
  double most = 0;
  size_t replica = 0;
  for (const ReplicaSummary& group : replicas) {
    for (int64_t i = 0; i < group.count && replica < run.most_kv_blocks.size(); ++i, ++replica) {
      if (group.kv_blocks == 0) continue;
      most = std::max(most, static_cast<double>(run.most_kv_blocks[replica]) / static_cast<double>(group.kv_blocks));
    }
  }
  return most;
}

std::string nothing_served_text(const ServingMetrics& metrics) {
  return fmt::format("No request was served: all {} failed ({}).", metrics.rejected, failure_reasons(metrics));
}

std::string benchmark_table(const ServingReport& report) {
  const ServingMetrics& metrics = report.run.metrics;
  std::string text = fmt::format("{:=^{}}\n", " Serving Benchmark Result ", table_width);
  text += line("Successful requests:", metrics.completed);
  text += line("Failed requests:", metrics.rejected);
  if (report.max_concurrency) text += line("Maximum request concurrency:", *report.max_concurrency);
  if (std::isfinite(report.request_rate)) text += line("Request rate configured (RPS):", report.request_rate);
  text += line("Benchmark duration (s):", metrics.duration_s);
  if (report.outputs_per_request > 1) text += line("Outputs per request:", report.outputs_per_request);
  text += line("Total input tokens:", metrics.input_tokens);
  if (generates(metrics)) text += line("Total generated tokens:", metrics.output_tokens);
  text += line("Request throughput (req/s):", metrics.request_throughput);
  if (metrics.goodput) text += line("Request goodput (req/s):", *metrics.goodput);
  if (generates(metrics)) {
    text += line("Output token throughput (tok/s):", metrics.output_throughput);
    text += line("Peak output token throughput (tok/s):", metrics.peak_output_tokens_per_s);
  }
  text += line("Peak concurrent requests:", static_cast<double>(metrics.peak_concurrent_requests));
  text += line("Total token throughput (tok/s):", metrics.total_token_throughput);
  for (const LatencyMetric& metric : latency_metrics) {
    const auto& shown = report.percentile_metrics;
    const bool is_asked = !generates(metrics) || std::find(shown.begin(), shown.end(), metric.name) != shown.end();
    if (!is_asked || !has_values(metric, metrics)) continue;
    text += latency_part(metric, metrics.*metric.summary, report.percentiles);
  }
  if (report.diffusion.block_tokens > 0) {
    text += diffusion_part(report.diffusion, metrics.speculation);
  } else if (metrics.speculation.drafts > 0) {
    text += speculation_part(metrics.speculation);
  }
  return text + fmt::format("{:=^{}}\n", "", table_width);
}

std::string serving_text(const ServingReport& report) {
  const ServingMetrics& metrics = report.run.metrics;
  // Tables would show zeros for what nobody measured.
  const bool served_nothing = metrics.completed == 0 && metrics.rejected > 0;
  if (served_nothing) return replica_lines(report) + device_notes_text(report.notes);
  std::string text = benchmark_table(report) + "\n" + replica_lines(report);
  if (report.run.has_intervals()) {
    for (const NamedHeadline& named : headlines(report)) {
      if (named.in_text) text += interval_line(named.label, report.run.headline(named.number));
    }
  }
  for (const ReplicaSummary& group : report.replicas) {
    text += fmt::format("{:<28} {:>10}   blocks of {} tokens{}\n", "KV cache", group.kv_blocks, group.block_size,
                        !group.pool.empty()          ? fmt::format(", {} pool", group.pool)
                        : report.replicas.size() > 1 ? ", " + group.device
                                                     : "");
  }
  text += fmt::format("{:<28} {:>9.0f}%   of the KV cache\n", "Fullest", 100 * report.peak_kv_use());
  text += fmt::format("{:<28} {:>10}\n", "Preemptions", metrics.preemptions);
  text += fmt::format("{:<28} {:>9.1f}%   of prompt tokens\n", "Prefix cache hits", 100 * cached_share(metrics));
  text += fmt::format("{:<28} {:>10.2f}   in the front end and the queue, before the first step\n", "Mean wait (ms)",
                      metrics.queue.mean_ms);
  if (const KvTierUsage& tiers = report.run.totals.kv_tiers; !tiers.tiers.empty()) {
    text += kv_tiers_text(tiers, metrics.input_tokens, metrics.cached_tokens);
  }
  if (report.priorities.size() > 1) text += priorities_text(report);
  text += time_series_text(report.run);
  if (!metrics.exact) text += "Percentiles are within 0.05%: there were too many values to keep them all.\n";
  if (metrics.rejected > 0) text += "Failed requests: " + failure_reasons(metrics) + "\n";
  return text + device_notes_text(report.notes);
}

Json vllm_result_json(const ServingReport& report) {
  const ServingMetrics& metrics = report.run.metrics;
  Json result = Json::object({{"date", ""},
                              {"backend", "foretoken"},
                              {"label", report.label.empty() ? report.replicas.front().scheduler : report.label},
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
    set_latencies(result, metric.name, metrics.*metric.summary, report.percentiles);
    const bool has_gaps = metric.name == "tpot" || metric.name == "itl";
    if (metrics.completed == 0 || (has_gaps && metrics.output_tokens == 0)) clear_latencies(result, metric.name);
  }
  for (const auto& [key, value] : report.metadata) result.set(with_literal_braces(key), with_literal_braces(value));
  if (metrics.speculation.drafts > 0 && report.diffusion.block_tokens == 0)
    add_speculation(result, metrics.speculation);
  return result;
}

void add_request_arrays(Json& result, std::span<const RequestDetail> requests) {
  Json inputs = Json::array(), outputs = Json::array(), ttfts = Json::array(), itls = Json::array();
  Json starts = Json::array(), errors = Json::array();
  for (const RequestDetail& request : requests) {
    const RequestRecord& record = request.record;
    const bool completed = record.outcome == RequestOutcome::completed;
    Json gaps = Json::array();
    for (const RequestDetail::Gaps& run : request.gaps) {
      for (int64_t i = 0; i < run.count; ++i) gaps.push(to_seconds(run.gap).value());
    }
    inputs.push(record.input_tokens);
    outputs.push(completed ? record.output_tokens : 0);
    ttfts.push(completed ? to_seconds(record.ttft()).value() : 0.0);
    itls.push(std::move(gaps));
    starts.push(to_seconds(record.arrival).value());
    errors.push(std::string(rejection_text(record.rejection)));
  }
  result.set("input_lens", std::move(inputs))
      .set("output_lens", std::move(outputs))
      .set("ttfts", std::move(ttfts))
      .set("itls", std::move(itls))
      .set("start_times", std::move(starts))
      .set("errors", std::move(errors));
}

Json serving_json(const ServingReport& report) {
  Json result = vllm_result_json(report);
  Json failures = Json::object();
  for (size_t i = 1; i < rejection_kinds; ++i) {
    const auto why = static_cast<Rejection>(i);
    const int64_t count = report.run.metrics.rejected_for[i];
    if (why <= Rejection::beyond_kv_cache || count > 0) failures.set(std::string(rejection_text(why)), count);
  }
  if (report.run.has_intervals()) result.set("intervals", intervals_json(report));
  const ReplicaSummary& first = report.replicas.front();
  result.set("device", first.device)
      .set("devices", report.devices())
      .set("replicas", report.replica_count())
      .set("replica_groups", replicas_json(report))
      .set("failures", std::move(failures))
      .set("preemptions", report.run.metrics.preemptions)
      .set("prefix_cache_hit_share", cached_share(report.run.metrics))
      .set("mean_queue_ms", report.run.metrics.queue.mean_ms)
      .set("kv_blocks", first.kv_blocks)
      .set("block_size", first.block_size)
      .set("peak_kv_use", report.peak_kv_use())
      .set("steps", report.run.totals.steps)
      .set("scheduling_decisions", report.run.totals.decisions)
      .set("percentiles_exact", report.run.metrics.exact)
      .set("priorities", priorities_json(report))
      .set("time_series", time_series_json(report.run));
  if (const KvTierUsage& tiers = report.run.totals.kv_tiers; !tiers.tiers.empty()) {
    const ServingMetrics& metrics = report.run.metrics;
    result.set("kv_tiers", kv_tiers_json(tiers, metrics.input_tokens, metrics.cached_tokens));
  }
  if (report.outputs_per_request > 1) result.set("outputs_per_request", report.outputs_per_request);
  if (report.diffusion.block_tokens > 0) {
    result.set("diffusion", diffusion_json(report.diffusion, report.run.metrics.speculation));
  }
  set_device_notes(result, report.notes);
  return result;
}

}  // namespace foretoken
