#include "report/page/serving_parts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "report/drawing/line_chart.h"
#include "report/page/step_parts.h"
#include "report/serving/run_explanation_report.h"

namespace foretoken {
namespace {

// Three digits, without an exponent where there are more.
std::string three_digits(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace

std::string with_run_interval(const ServingRun& run, const MetricNumber& number, std::string_view unit) {
  const Headline headline = run.headline(number);
  if (!run.has_intervals()) return fmt::format("{} {}", three_digits(headline.value), unit);
  return fmt::format("{} {} ({} to {})", three_digits(headline.value), unit, three_digits(headline.low),
                     three_digits(headline.high));
}

void add_run_figures(HtmlPage& page, const ServingRun& run, const std::vector<double>& percentiles) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, std::string_view unit, const MetricNumber& number) {
    const Headline headline = run.headline(number);
    const bool known = run.has_intervals();
    rows.push_back({name, fmt::format("{} {}", three_digits(headline.value), unit),
                    known ? three_digits(headline.low) : "", known ? three_digits(headline.high) : ""});
  };
  const auto latencies = [&](const std::string& name, LatencySummary ServingMetrics::*summary) {
    add(name + ", median", "ms", [=](const ServingMetrics& m) { return (m.*summary).median_ms; });
    for (size_t i = 0; i < percentiles.size(); ++i) {
      if (percentiles[i] == 50) continue;  // the median
      add(fmt::format("{}, p{:g}", name, percentiles[i]), "ms",
          [=](const ServingMetrics& m) { return (m.*summary).percentiles_ms[i]; });
    }
  };
  latencies("Time to first token", &ServingMetrics::ttft);
  latencies("Time per output token", &ServingMetrics::tpot);
  latencies("End to end", &ServingMetrics::e2el);
  add("Requests", "/s", [](const ServingMetrics& m) { return m.request_throughput; });
  if (run.metrics.goodput) add("Goodput", "/s", [](const ServingMetrics& m) { return m.goodput.value_or(0); });
  add("Output tokens", "/s", [](const ServingMetrics& m) { return m.output_throughput; });
  page.table({"", "predicted", "low (90%)", "high"}, rows);
}

void add_latency_curves(HtmlPage& page, const LatencyCurves& curves, const LatencyGoals& goals) {
  struct Latency {
    const char* title;
    LatencyCurves::Curve curve;
    std::optional<double> goal;
  };
  const std::array<Latency, 3> latencies = {{{"Time to first token", curves.ttft(), goals.ttft_ms},
                                             {"Time per output token", curves.tpot(), goals.tpot_ms},
                                             {"End to end", curves.e2el(), goals.e2el_ms}}};
  page.heading("How long requests wait");
  for (const Latency& latency : latencies) {
    if (latency.curve.empty()) continue;
    LineChart chart{.title = latency.title,
                    .x_label = "milliseconds",
                    .y_label = "% of requests",
                    .lines = {{.name = "requests that took at most this long", .points = latency.curve}}};
    if (latency.goal) chart.marks.push_back({.at = *latency.goal, .label = "goal", .is_vertical = true});
    const double worst = latency.curve.back().first;
    page.figure(line_chart_svg(chart),
                fmt::format("{}: half of the requests within {} ms, all within {} ms", latency.title,
                            three_digits(latency.curve[50].first), three_digits(worst)));
  }
}

void add_rate_charts(HtmlPage& page, const std::vector<RatePoint>& points, const std::vector<RateChart>& charts,
                     const std::vector<MarkedRate>& marked) {
  if (points.size() < 2) return;
  page.heading("Latency against load");
  for (const RateChart& own : charts) {
    LineChart chart{.title = own.title,
                    .x_label = "requests per second",
                    .y_label = "ms",
                    .lines = {},
                    .marks = {},
                    .logarithmic_y = true};
    for (const RateChart::Line& line : own.lines) {
      ChartLine drawn{.name = line.name, .points = {}, .is_dashed = !chart.lines.empty()};
      for (const RatePoint& point : points) drawn.points.emplace_back(point.rate, line.milliseconds(point.metrics));
      chart.lines.push_back(std::move(drawn));
    }
    for (const MarkedRate& mark : marked)
      chart.marks.push_back({.at = mark.rate, .label = mark.label, .is_vertical = true});
    if (own.limit_ms) chart.marks.push_back({.at = *own.limit_ms, .label = "limit"});
    page.figure(line_chart_svg(chart), own.caption);
  }
}

std::optional<double> doubling_rate(const std::vector<RatePoint>& points, const MetricNumber& milliseconds) {
  constexpr double times = 2;
  if (points.empty()) return std::nullopt;
  const double limit = times * milliseconds(points.front().metrics);
  if (!(limit > 0)) return std::nullopt;
  for (size_t i = 1; i < points.size(); ++i) {
    const double before = milliseconds(points[i - 1].metrics), here = milliseconds(points[i].metrics);
    if (here < limit) continue;
    const double share = (limit - before) / (here - before);
    return points[i - 1].rate + share * (points[i].rate - points[i - 1].rate);
  }
  return std::nullopt;
}

void add_run_explanation(HtmlPage& page, const RunExplanation& explanation, const std::optional<double>& rate) {
  const TtftParts& parts = explanation.ttft;
  const auto share = [&](double ms) {
    return parts.ttft_ms > 0 ? fmt::format("{:.0f}%", 100 * ms / parts.ttft_ms) : std::string();
  };
  const std::pair<const char*, double> named[] = {{"in the queue", parts.queue_ms},
                                                  {"prefill", parts.prefill_ms},
                                                  {"waiting for the host", parts.host_ms},
                                                  {"from the end of prefill to the first token", parts.transfer_ms}};
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, ms] : named) rows.push_back({name, fmt::format("{:.1f}", ms), share(ms)});
  rows.push_back({"TTFT", fmt::format("{:.1f}", parts.ttft_ms), ""});
  page.heading("What a slow request waits for");
  page.table({fmt::format("part of the p{:g} TTFT", parts.percentile), "ms", "share"}, rows);
  const std::string words = run_explanation_words(explanation);
  page.paragraph(rate ? fmt::format("At {:.3g} requests/s, {}", *rate, words) : fmt::format("In this run, {}", words));
}

void add_run_over_time(HtmlPage& page, const ServingRun& run) {
  if (run.series.size() < 2) return;
  page.heading("The run over time");
  ChartLine running{.name = "running"}, waiting{.name = "waiting", .is_dashed = true}, blocks{.name = "KV blocks"};
  for (const TimePoint& point : run.series) {
    running.points.emplace_back(point.begin_s, point.running);
    waiting.points.emplace_back(point.begin_s, point.waiting);
    blocks.points.emplace_back(point.begin_s, point.kv_blocks_used);
  }
  page.figure(
      line_chart_svg({.title = "Requests", .x_label = "seconds", .y_label = "requests", .lines = {running, waiting}}),
      "Running and waiting requests");
  page.figure(line_chart_svg({.title = "KV cache", .x_label = "seconds", .y_label = "blocks", .lines = {blocks}}),
              "KV cache blocks in use, all replicas together");
}

void add_step_times(HtmlPage& page, const std::vector<TypicalStep>& steps) {
  if (steps.empty()) return;
  page.heading("Where the time goes");
  add_operator_times(page, steps, "Time of all steps by operator",
                     "Operators of the typical step of each kind (prompts, decodes, both)");
}

TimeByConfidence time_by_confidence(const std::vector<TypicalStep>& steps) {
  TimeByConfidence sum = {};
  for (const TypicalStep& typical : steps) {
    const TimeByConfidence own = time_by_confidence(typical.step);
    const double scale = typical.share.seconds / typical.step.seconds.value;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += scale * own[i];
  }
  return sum;
}

void add_device_memory(HtmlPage& page, const ServingMemory& memory) {
  page.heading("Memory per device");
  const auto part = [](std::string name, double bytes) {
    return BarPart{std::move(name), std::max(0.0, bytes), bytes_text(std::max(0.0, bytes))};
  };
  const double kv = memory.kv_pool.value, weights = memory.weights.value;
  const double rest = std::max(0.0, memory.total.value - kv - weights - std::max(0.0, memory.unused.value));
  page.figure(parts_bar_svg(fmt::format("{} of memory", bytes_text(memory.total.value)),
                            {part("weights", weights), part("KV cache", kv), part("activations, graphs, runtime", rest),
                             part("unused", memory.unused.value)}),
              fmt::format("The KV cache holds {:.0f} tokens", memory.tokens.value));
}

}  // namespace foretoken
