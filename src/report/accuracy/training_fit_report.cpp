#include "report/accuracy/training_fit_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/csv.h"
#include "base/text.h"
#include "report/accuracy/validation_report.h"

namespace foretoken {

std::string training_fit_text(const TrainingFit& fit) {
  std::string text = fmt::format("{} in {}.\n\nRuns used in the fit:\n", counted(fit.constants, "constant"),
                                 counted(fit.stacks.size(), "stack"));
  text += validation_text(fit.seen);
  text += "\nRuns left out of the fit:\n" + validation_text(fit.unseen) + "\n";
  const auto add = [&](const FittedStack& stack, const std::optional<RunInterval>& interval, std::string_view what) {
    if (!interval) return;
    text += fmt::format("{:<24} {:<8} 90% of runs took {:.2f} to {:.2f} times the prediction\n", stack.name, what,
                        interval->low, interval->high);
  };
  for (const FittedStack& stack : fit.stacks) {
    add(stack, stack.interval, "dense");
    add(stack, stack.experts_interval, "experts");
    add(stack, stack.tuning_interval, "tuning");
  }
  return text;
}

std::string fitted_runs_csv(const TrainingFit& fit) {
  std::string text = "id,source,stack,measured_s,seen_s,unseen_s\n";
  for (const FittedRun& run : fit.runs) {
    text += fmt::format("{},{},{},{},{},{}\n", csv_cell(run.id), csv_cell(run.source), csv_cell(run.stack),
                        number_text(run.measured_s), number_text(run.seen_s), number_text(run.unseen_s));
  }
  return text;
}

Json training_fit_json(const TrainingFit& fit) {
  Json stacks = Json::array();
  for (const FittedStack& stack : fit.stacks) {
    Json one = Json::object({{"name", stack.name}, {"runs", stack.runs}});
    const auto add = [&](const char* name, const std::optional<RunInterval>& interval) {
      if (interval) one.set(name, Json::object({{"low", interval->low}, {"high", interval->high}}));
    };
    add("interval", stack.interval);
    add("experts_interval", stack.experts_interval);
    add("tuning_interval", stack.tuning_interval);
    stacks.push(std::move(one));
  }
  return Json::object({{"constants", fit.constants},
                       {"seen", validation_json(fit.seen, "training")},
                       {"unseen", validation_json(fit.unseen, "training")},
                       {"stacks", std::move(stacks)}});
}

}  // namespace foretoken
