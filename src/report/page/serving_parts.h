// Parts of a page about a simulated serving run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compose/serving_memory.h"
#include "report/drawing/html_page.h"
#include "report/page/trust_panel.h"
#include "serving/results/latency_curves.h"
#include "serving/results/run_explanation.h"
#include "serving/results/typical_steps.h"
#include "serving/serving_run.h"

namespace foretoken {

using MetricNumber = std::function<double(const ServingMetrics&)>;

// "12.3 ms (11 to 14)": the interval where the run has one.
std::string with_run_interval(const ServingRun& run, const MetricNumber& number, std::string_view unit);

// Latencies and throughput with their intervals; `percentiles` are those of the run.
void add_run_figures(HtmlPage& page, const ServingRun& run, const std::vector<double>& percentiles);

// Which share of the requests took no longer, with the goals.
void add_latency_curves(HtmlPage& page, const LatencyCurves& curves, const LatencyGoals& goals);

// The same load at another rate.
struct RatePoint {
  double rate = 0;  // requests per second
  ServingMetrics metrics;
};

// A latency as the rate rises.
struct RateChart {
  struct Line {
    std::string name;
    MetricNumber milliseconds;
  };
  std::string title, caption;
  std::vector<Line> lines;
  std::optional<double> limit_ms;
};
// A rate that a chart points out: what was asked for, the capacity.
struct MarkedRate {
  double rate = 0;
  std::string label;
};
// `points` rising; fewer than two say nothing.
void add_rate_charts(HtmlPage& page, const std::vector<RatePoint>& points, const std::vector<RateChart>& charts,
                     const std::vector<MarkedRate>& marked);

// Where requests begin to queue: the rate at which `milliseconds` reaches twice its value at the lowest rate, between
// the points by a straight line. Nothing where it does not. (The knee of a search, knee_of, is another rate.)
std::optional<double> doubling_rate(const std::vector<RatePoint>& points, const MetricNumber& milliseconds);

// What a slow request waits for, and how busy the devices are, at so many requests/s where the load has a rate.
void add_run_explanation(HtmlPage& page, const RunExplanation& explanation, const std::optional<double>& rate);

// Requests that run and wait, and the KV cache.
void add_run_over_time(HtmlPage& page, const ServingRun& run);

// By operator, with what the kernel times of all steps rest on.
void add_step_times(HtmlPage& page, const std::vector<TypicalStep>& steps);
TimeByConfidence time_by_confidence(const std::vector<TypicalStep>& steps);

void add_device_memory(HtmlPage& page, const ServingMemory& memory);

}  // namespace foretoken
