#include "app/cli/plan_files.h"

#include "app/cli/out_file.h"
#include "base/file.h"
#include "report/serving_plan_report.h"

namespace foretoken {

void PlanFileFlags::declare(Options& options) {
  options.text("--html", html, "Write a page with the answer, the frontier and the limit to this file");
  options.text("--trace-out", trace_out, "Write a run of the winner as a Chrome trace, for ui.perfetto.dev");
  options.text("--csv", csv, "Write every simulated run to this CSV file");
}

void PlanFileFlags::check() const {
  OutFile("--html", html, OutFile::Mode::append).close();
  OutFile("--trace-out", trace_out, OutFile::Mode::append).close();
  OutFile("--csv", csv, OutFile::Mode::append).close();
}

void PlanFileFlags::write(const ServingPlanner& planner, const ServingSearchResult& result) const {
  const ServingPlanReport report{.question = planner.question, .traffic = planner.traffic, .result = result};
  if (!html.empty()) write_file(html, serving_plan_html(report));
  if (!csv.empty()) write_file(csv, serving_plan_csv(report));
  const PlanPoint* winner = result.winner();
  if (trace_out.empty() || winner == nullptr) return;
  const double rate = planner.question.rate.value_or(winner->capacity.value);
  write_file(trace_out, planner.trace(winner->layout, rate).dump(0) + "\n");
}

}  // namespace foretoken
