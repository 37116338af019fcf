#include "app/cli/output/plan_files.h"

#include "app/cli/output/out_file.h"
#include "app/cli/output/page_trust.h"
#include "app/cli/output/progress.h"
#include "base/file.h"
#include "report/page/shown_layout.h"

namespace foretoken {

void PlanFileFlags::declare(Options& options) {
  options_ = &options;
  options.text("--html", html,
               "Write an HTML report: the answer, the launch command, the frontier, and the winner's latencies, steps, "
               "roofline and memory");
  options.text("--trace-out", trace_out, "Write a run of the winner as a Chrome trace, for ui.perfetto.dev");
  options.text("--csv", csv, "Write every simulated run to this CSV file");
}

void PlanFileFlags::check() const {
  OutFile("--html", html, OutFile::Mode::append).close();
  OutFile("--trace-out", trace_out, OutFile::Mode::append).close();
  OutFile("--csv", csv, OutFile::Mode::append).close();
}

void PlanFileFlags::write(const ServingPlanner& planner, const ServingPlanReport& report) const {
  if (!html.empty()) write_report(html, page(planner, report));
  if (!csv.empty()) write_report(csv, serving_plan_csv(report));
  const PlanPoint* winner = report.result.winner();
  if (trace_out.empty()) return;
  if (winner == nullptr) {
    remove_if_empty(trace_out);  // check() made it
    return;
  }
  const double rate = planner.question.rate.value_or(winner->capacity.value);
  write_file(trace_out, layout_trace(planner, winner->layout, rate).dump(0) + "\n");
}

std::string PlanFileFlags::page(const ServingPlanner& planner, const ServingPlanReport& report) const {
  const PlanPoint* winner = report.result.winner();
  std::vector<Device> devices;
  std::vector<std::string_view> layers = {"kernels", "steps", "serving"};
  if (winner == nullptr) {
    for (const HardwareChoice& choice : planner.question.hardware) devices.push_back(choice.device);
  } else {
    for (const auto& [choice, count] : planner.question.hardware_of(winner->layout)) devices.push_back(choice->device);
    const bool has_ranks = winner->layout.pool.engine.devices() > 1 ||
                           (winner->layout.decode && winner->layout.decode->engine.devices() > 1);
    if (has_ranks) layers.insert(layers.begin() + 1, "collectives");
  }
  ServingPlanPage page{.report = report,
                       .winner = std::nullopt,
                       .trust = page_trust(planner.library, std::move(layers), devices),
                       .command = options_->line()};
  page.trust.time_of = "the kernels' time in the winner's typical steps";
  if (winner != nullptr) {
    show_progress("the winner's page");
    page.winner = shown_layout(planner, winner->layout, planner.question.rate.value_or(winner->capacity.value),
                               winner->capacity.value);
    page.trust.time = time_by_confidence(page.winner->steps);
  }
  return serving_plan_page_html(page);
}

}  // namespace foretoken
