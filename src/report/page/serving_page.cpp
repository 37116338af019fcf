#include "report/page/serving_page.h"

#include <array>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/text.h"
#include "report/page/html_page.h"
#include "report/page/line_chart.h"

namespace foretoken {
namespace {

using Number = std::function<double(const ServingMetrics&)>;

std::string with_interval(const ServingRun& run, const Number& number, std::string_view unit) {
  const Headline headline = run.headline(number);
  if (!run.has_intervals()) return fmt::format("{:.4g} {}", headline.value, unit);
  return fmt::format("{:.4g} {} ({:.4g} to {:.4g})", headline.value, unit, headline.low, headline.high);
}

void add_figures(HtmlPage& page, const ServingReport& report) {
  const ServingRun& run = report.run;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, std::string_view unit, const Number& number) {
    const Headline headline = run.headline(number);
    const bool known = run.has_intervals();
    rows.push_back({name, fmt::format("{:.4g} {}", headline.value, unit),
                    known ? fmt::format("{:.4g}", headline.low) : "",
                    known ? fmt::format("{:.4g}", headline.high) : ""});
  };
  const auto latencies = [&](const std::string& name, LatencySummary ServingMetrics::*summary) {
    add(name + ", median", "ms", [=](const ServingMetrics& m) { return (m.*summary).median_ms; });
    for (size_t i = 0; i < report.percentiles.size(); ++i) {
      add(fmt::format("{}, p{:g}", name, report.percentiles[i]), "ms",
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

void add_curves(HtmlPage& page, const ServingPage& own) {
  struct Latency {
    const char* title;
    LatencyCurves::Curve curve;
    std::optional<double> goal;
  };
  const std::array<Latency, 3> latencies = {{{"Time to first token", own.curves.ttft(), own.goals.ttft_ms},
                                             {"Time per output token", own.curves.tpot(), own.goals.tpot_ms},
                                             {"End to end", own.curves.e2el(), own.goals.e2el_ms}}};
  page.heading("How long requests wait");
  for (const Latency& latency : latencies) {
    if (latency.curve.empty()) continue;
    LineChart chart{.title = latency.title,
                    .x_label = "milliseconds",
                    .y_label = "% of requests",
                    .lines = {{.name = "requests that took at most so long", .points = latency.curve}}};
    if (latency.goal) chart.marks.push_back({.at = *latency.goal, .label = "goal", .is_vertical = true});
    const double worst = latency.curve.back().first;
    page.figure(line_chart_svg(chart), fmt::format("{}: half of the requests within {:.3g} ms, all within {:.3g} ms",
                                                   latency.title, latency.curve[50].first, worst));
  }
}

void add_rates(HtmlPage& page, const ServingPage& own) {
  if (own.rates.size() < 2) return;
  page.heading("Latency against load");
  const auto chart_of = [&](const std::string& title, LatencySummary ServingMetrics::*summary,
                            const std::optional<double>& goal) {
    ChartLine median{.name = "median"},
        tail{.name = fmt::format("p{:g}", own.report.percentiles.front()), .is_dashed = true};
    for (const RatePoint& point : own.rates) {
      median.points.emplace_back(point.rate, (point.metrics.*summary).median_ms);
      tail.points.emplace_back(point.rate, (point.metrics.*summary).percentiles_ms.front());
    }
    LineChart chart{.title = title,
                    .x_label = "requests per second",
                    .y_label = "ms",
                    .lines = {median, tail},
                    .marks = {{.at = own.report.request_rate, .label = "asked for", .is_vertical = true}},
                    .logarithmic_y = true};
    if (goal) chart.marks.push_back({.at = *goal, .label = "goal"});
    return line_chart_svg(chart);
  };
  page.figure(chart_of("Time to first token", &ServingMetrics::ttft, own.goals.ttft_ms),
              "Median and tail of TTFT as the rate of requests rises; where the lines bend upwards, requests queue.");
  page.figure(chart_of("Time per output token", &ServingMetrics::tpot, own.goals.tpot_ms),
              "Median and tail of TPOT as the rate of requests rises.");
}

void add_series(HtmlPage& page, const ServingRun& run) {
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
      "Requests that run and that wait");
  page.figure(line_chart_svg({.title = "KV cache", .x_label = "seconds", .y_label = "blocks", .lines = {blocks}}),
              "Blocks of the KV cache in use, of all replicas together");
}

// Where the time of all steps went, and what the predictions of their kernels rest on.
void add_steps(HtmlPage& page, const ServingPage& own) {
  if (own.steps.empty()) return;
  page.heading("Where the time goes");
  double busy = 0;
  for (const TypicalStep& typical : own.steps) busy += typical.share.seconds;
  std::vector<BarPart> parts;
  const std::vector<OperatorShare> shares = operator_shares(own.steps);
  constexpr size_t most_page_parts = 8;
  double shown = 0;
  for (size_t i = 0; i < std::min(most_page_parts, shares.size()); ++i) {
    parts.push_back({shares[i].name, shares[i].seconds, fmt::format("{:.3g} s", shares[i].seconds)});
    shown += shares[i].seconds;
  }
  if (busy - shown > 1e-9 * busy) parts.push_back({"other", busy - shown, fmt::format("{:.3g} s", busy - shown)});
  page.figure(parts_bar_svg("Time of all steps by operator", parts),
              "Operators as in the typical step of each kind (prompts, decodes, both)");

  std::array<double, 4> by_confidence = {};
  double all = 0;
  for (const TypicalStep& typical : own.steps) {
    for (const StageEstimate& stage : typical.step.stages) {
      for (const TimedOperator& timed : stage.operators) {
        const double seconds = timed.seconds.value * typical.share.seconds / typical.step.seconds.value;
        by_confidence[static_cast<size_t>(timed.seconds.kind)] += seconds;
        all += seconds;
      }
    }
  }
  page.heading("How far to trust it");
  std::vector<std::vector<std::string>> rows;
  for (const Confidence kind :
       {Confidence::measured, Confidence::interpolated, Confidence::extrapolated, Confidence::roofline}) {
    rows.push_back({std::string(confidence_name(kind)),
                    fmt::format("{:.0f}%", 100 * by_confidence[static_cast<size_t>(kind)] / all)});
  }
  page.table({"kernel times are", "share of the time"}, rows);
  page.paragraph(
      "Intervals are central 90% intervals. The errors of each layer on published measurements are in "
      "docs/accuracy.md; "
      "foretoken validate repeats them.");
}

void add_memory(HtmlPage& page, const ServingMemory& memory) {
  page.heading("Memory of a device");
  const auto part = [](std::string name, double bytes) {
    return BarPart{std::move(name), std::max(0.0, bytes), bytes_text(std::max(0.0, bytes))};
  };
  const double kv = memory.kv_pool.value, weights = memory.weights.value;
  const double rest = std::max(0.0, memory.total.value - kv - weights - std::max(0.0, memory.unused.value));
  page.figure(parts_bar_svg(fmt::format("{} of memory", bytes_text(memory.total.value)),
                            {part("weights", weights), part("KV cache", kv), part("activations, graphs, runtime", rest),
                             part("unused", memory.unused.value)}),
              fmt::format("The cache holds {:.0f} tokens", memory.tokens.value));
}

}  // namespace

std::string serving_sentence(const ServingReport& report) {
  const ServingRun& run = report.run;
  const std::string load = std::isfinite(report.request_rate) ? fmt::format("{:g} requests/s", report.request_rate)
                           : report.max_concurrency ? fmt::format("{} requests in flight", *report.max_concurrency)
                                                    : std::string("its load");
  return fmt::format("{} on {} {} serves {} with a median TTFT of {} and a median TPOT of {}: {}.", report.model,
                     report.devices(), report.replicas.front().device, load,
                     with_interval(
                         run, [](const ServingMetrics& m) { return m.ttft.median_ms; }, "ms"),
                     with_interval(
                         run, [](const ServingMetrics& m) { return m.tpot.median_ms; }, "ms"),
                     with_interval(
                         run, [](const ServingMetrics& m) { return m.output_throughput; }, "output tokens/s"));
}

std::string serving_page_html(const ServingPage& own) {
  HtmlPage page(fmt::format("foretoken: {} on {}", own.report.model, own.report.replicas.front().device));
  page.sentence(serving_sentence(own.report));
  add_figures(page, own.report);
  add_curves(page, own);
  add_rates(page, own);
  add_series(page, own.report.run);
  add_steps(page, own);
  if (own.memory) add_memory(page, *own.memory);
  if (!own.more.empty()) {
    page.heading("In full");
    page.preformatted(own.more);
  }
  page.heading("To reproduce");
  page.preformatted(own.command);
  return page.finish();
}

}  // namespace foretoken
