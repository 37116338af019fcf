#include "report/page/serving_page.h"

#include <cmath>

#include <fmt/format.h>

#include "report/page/step_parts.h"

namespace foretoken {
namespace {

void add_rates(HtmlPage& page, const ServingPage& own) {
  const auto chart_of = [&](std::string title, std::string caption, LatencySummary ServingMetrics::*summary,
                            const std::optional<double>& goal) {
    return RateChart{.title = std::move(title),
                     .caption = std::move(caption),
                     .lines = {{"median", [=](const ServingMetrics& m) { return (m.*summary).median_ms; }},
                               {fmt::format("p{:g}", own.report.percentiles.front()),
                                [=](const ServingMetrics& m) { return (m.*summary).percentiles_ms.front(); }}},
                     .limit_ms = goal};
  };
  std::vector<MarkedRate> marked = {{own.report.request_rate, "asked for"}};
  const std::optional<double> doubled =
      doubling_rate(own.rates, [](const ServingMetrics& m) { return m.ttft.percentiles_ms.front(); });
  if (doubled) marked.push_back({*doubled, "TTFT doubles"});
  std::string said = "Median and tail of TTFT as the request rate increases. ";
  if (doubled) {
    said += fmt::format("Requests start to queue: at {:.3g} requests/s, the tail is twice that of the lightest load.",
                        *doubled);
  } else if (!own.rates.empty()) {
    said += fmt::format("Up to {:.3g} requests/s, the tail stays below twice that of the lightest load.",
                        own.rates.back().rate);
  }
  add_rate_charts(page, own.rates,
                  {chart_of("Time to first token", said, &ServingMetrics::ttft, own.goals.ttft_ms),
                   chart_of("Time per output token", "Median and tail of TPOT as the request rate increases.",
                            &ServingMetrics::tpot, own.goals.tpot_ms)},
                  marked);
}

void add_costs(HtmlPage& page, const ServingPage& own) {
  page.heading("Energy and cost");
  if (own.energy) {
    add_energy(page, *own.energy);
  } else if (own.rent) {
    add_rent(page, *own.rent);
  }
  if (!own.energy_remark.empty()) page.paragraph(own.energy_remark);
}

}  // namespace

std::string serving_sentence(const ServingReport& report) {
  const ServingRun& run = report.run;
  const std::string load = std::isfinite(report.request_rate) ? fmt::format("{:g} requests/s", report.request_rate)
                           : report.max_concurrency ? fmt::format("{} requests in flight", *report.max_concurrency)
                                                    : std::string("its load");
  return fmt::format("{} on {} {} serves {} with a median TTFT of {} and a median TPOT of {}: {}.", report.model,
                     report.devices(), report.replicas.front().device, load,
                     with_run_interval(
                         run, [](const ServingMetrics& m) { return m.ttft.median_ms; }, "ms"),
                     with_run_interval(
                         run, [](const ServingMetrics& m) { return m.tpot.median_ms; }, "ms"),
                     with_run_interval(
                         run, [](const ServingMetrics& m) { return m.output_throughput; }, "output tokens/s"));
}

std::string serving_page_html(const ServingPage& own) {
  HtmlPage page(fmt::format("foretoken: {} on {}", own.report.model, own.report.replicas.front().device));
  page.sentence(serving_sentence(own.report));
  add_run_figures(page, own.report.run, own.report.percentiles);
  add_latency_curves(page, own.curves, own.goals);
  add_rates(page, own);
  if (own.explanation) {
    const double rate = own.report.request_rate;
    add_run_explanation(page, *own.explanation, std::isfinite(rate) ? std::optional(rate) : std::nullopt);
  }
  add_run_over_time(page, own.report.run);
  add_step_times(page, own.steps);
  std::vector<TypicalStep> of_device;
  for (const TypicalStep& typical : own.steps) {
    if (typical.device == own.device.name) of_device.push_back(typical);
  }
  add_roofline(page, of_device, own.device);
  if (own.memory) add_device_memory(page, *own.memory);
  add_costs(page, own);
  add_trust(page, own.trust);
  if (!own.more.empty()) {
    page.heading("In full");
    page.preformatted(own.more);
  }
  page.heading("To reproduce");
  page.preformatted(own.command);
  return page.finish();
}

}  // namespace foretoken
