#include "report/page/serving_plan_page.h"

#include <fmt/format.h>

#include "report/page/step_parts.h"

namespace foretoken {
namespace {

constexpr size_t most_layouts_of_page = 12;

std::string dollars(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.2f}", *usd) : "";
}

// Those simulated at length, best first.
void add_ranking(HtmlPage& page, const ServingPlanReport& report) {
  if (report.result.ranking.empty()) return;
  const ServingQuestion& question = report.question;
  std::vector<std::vector<std::string>> rows;
  for (const size_t i : report.result.ranking) {
    if (rows.size() == most_layouts_of_page) break;
    const PlanPoint& point = report.result.points[i];
    const PlanRun* run = shown_run(question, point);
    const auto devices = static_cast<double>(point.layout.devices());
    rows.push_back(
        {layout_text(point.layout), devices_text(point.layout), fmt::format("{}", point.layout.devices()),
         fmt::format("{:.3g}", point.capacity.value),
         fmt::format("{:.3g} to {:.3g}", point.capacity.low, point.capacity.high),
         run != nullptr ? fmt::format("{:.0f}", run->output_tokens_per_s / devices) : "",
         run != nullptr ? fmt::format("{:.1f}", run->tokens_per_s_of_user) : "",
         dollars(question.usd_per_hour(point.layout)),
         run != nullptr ? dollars(usd_per_million_tokens(question, point.layout, *run)) : "",
         run != nullptr && run->joules_per_token.value > 0 ? fmt::format("{:.2f}", run->joules_per_token.value) : ""});
  }
  page.heading("The best layouts");
  page.table({"layout", "device", "GPUs", "requests/s", "90% interval", "tokens/s per GPU", "tokens/s per user",
              "USD/hour", "USD/million output tokens", "J/output token"},
             rows);
  page.paragraph(
      "From long simulations, best first. Layouts whose intervals overlap cannot be told apart; the full list is "
      "below.");
}

// What the winner costs and draws at the rate that it is shown by.
void add_plan_costs(HtmlPage& page, const ServingQuestion& question, const PlanPoint& winner) {
  const PlanRun* run = shown_run(question, winner);
  if (run == nullptr) return;
  const std::optional<double> usd_per_hour = question.usd_per_hour(winner.layout);
  const Headline& joules = run->joules_per_token;
  std::vector<std::vector<std::string>> rows;
  if (usd_per_hour) {
    rows.push_back({"Rent per hour", fmt::format("{:.2f} USD", *usd_per_hour), "", ""});
    rows.push_back({"Per million output tokens",
                    fmt::format("{:.2f} USD", usd_per_million_tokens(question, winner.layout, *run).value_or(0)), "",
                    ""});
  }
  if (joules.value > 0) {
    rows.push_back({"Facility, per output token", fmt::format("{:.3g} J", joules.value),
                    fmt::format("{:.3g}", joules.low), fmt::format("{:.3g}", joules.high)});
  }
  page.heading("Energy and cost");
  if (rows.empty()) {
    page.paragraph("Neither the price nor the power of these devices is known.");
    return;
  }
  page.table({fmt::format("at {:.3g} requests/s", run->rate), "predicted", "low (90%)", "high"}, rows);
  page.paragraph("The interval covers board power only; host, facility and prices are taken as given.");
}

// A chart for each limit, at its percentile.
void add_limits(HtmlPage& page, const ServingPlanReport& report, const PlanPoint& winner, const ShownLayout& shown) {
  std::vector<RateChart> charts;
  for (const LatencySlo& slo : report.question.slos) {
    const std::vector<double>& percentiles = shown.percentiles;
    charts.push_back(
        {.title = slo_text(slo),
         .caption = fmt::format(
             "{} as the request rate increases; the limit of {:g} ms holds up to {:.3g} requests/s ({:.3g} to {:.3g})",
             slo_text(slo).substr(0, slo_text(slo).find(" <")), slo.limit_ms, winner.capacity.value,
             winner.capacity.low, winner.capacity.high),
         .lines = {{fmt::format("p{:g} of requests", slo.percentile),
                    [slo, percentiles](const ServingMetrics& metrics) {
                      return achieved_ms(slo, metrics, percentiles);
                    }}},
         .limit_ms = slo.limit_ms});
  }
  std::vector<MarkedRate> marked = {{winner.capacity.value, "capacity"}};
  if (report.question.rate) marked.push_back({*report.question.rate, "asked for"});
  add_rate_charts(page, shown.rates, charts, marked);
}

void add_winner(HtmlPage& page, const ServingPlanReport& report, const ShownLayout& shown) {
  const PlanPoint& winner = *report.result.winner();
  add_limits(page, report, winner, shown);
  if (const PlanRun* knee = knee_of(report.result.curve)) {
    page.paragraph(
        fmt::format("The knee is at {:.3g} requests/s: beyond it, the speed for each user falls faster than throughput "
                    "grows.",
                    knee->rate));
  }
  if (report.explanation != nullptr) add_run_explanation(page, report.explanation->run, report.explanation->rate);
  page.heading(fmt::format("The winner at {:.3g} requests/s", shown.rate));
  add_run_figures(page, shown.run, shown.percentiles);
  add_latency_curves(page, shown.curves, shown.goals);
  add_run_over_time(page, shown.run);
  add_step_times(page, shown.steps);
  std::vector<TypicalStep> of_device;
  for (const TypicalStep& typical : shown.steps) {
    if (typical.device == shown.device.name) of_device.push_back(typical);
  }
  add_roofline(page, of_device, shown.device);
  add_device_memory(page, shown.memory);
  add_plan_costs(page, report.question, winner);
}

}  // namespace

std::string serving_plan_page_html(const ServingPlanPage& own) {
  const ServingPlanReport& report = own.report;
  HtmlPage page(fmt::format("foretoken: serving {}", report.question.model.served_name()));
  page.sentence(serving_plan_sentence(report));
  if (const PlanPoint* winner = report.result.winner()) {
    page.heading("To start it");
    page.preformatted(launch_text(report, winner->layout));
  }
  page.heading("Speed per user against throughput per GPU");
  page.figure(serving_plan_svg(report),
              "Every simulated run within the limits. Red: the winner; line: runs that no other run beats in both; "
              "dashed: the TPOT limit");
  add_ranking(page, report);
  if (own.winner) add_winner(page, report, *own.winner);
  add_trust(page, own.trust);
  page.heading("In full");
  page.preformatted(serving_plan_text(report));
  page.heading("To reproduce");
  page.preformatted(own.command);
  return page.finish();
}

}  // namespace foretoken
