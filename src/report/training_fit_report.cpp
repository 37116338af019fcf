#include "report/training_fit_report.h"

#include <fmt/format.h>

#include "report/validation_report.h"

namespace foretoken {

std::string training_fit_text(const TrainingFit& fit) {
  std::string text =
      fmt::format("{} constants in {} stacks.\n\nRuns that each fit has seen:\n", fit.constants, fit.stacks.size());
  text += validation_text(fit.seen);
  text += "\nRuns left out of their fit:\n" + validation_text(fit.unseen) + "\n";
  for (const FittedStack& stack : fit.stacks) {
    text += fmt::format("{:<24} {:>4} runs, 90% within {:.2f} to {:.2f} of the prediction\n", stack.name, stack.runs,
                        stack.low, stack.high);
  }
  return text;
}

Json training_fit_json(const TrainingFit& fit) {
  Json stacks = Json::array();
  for (const FittedStack& stack : fit.stacks) {
    stacks.push(Json::object({{"name", stack.name}, {"runs", stack.runs}, {"low", stack.low}, {"high", stack.high}}));
  }
  return Json::object({{"constants", fit.constants},
                       {"seen", validation_json(fit.seen, "training")},
                       {"unseen", validation_json(fit.unseen, "training")},
                       {"stacks", std::move(stacks)}});
}

}  // namespace foretoken
