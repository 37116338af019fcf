#include "validate/training/validate_training.h"

#include <chrono>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "validate/row_filter.h"

namespace foretoken {
namespace {

// How many runs were assumed to compute what again, where their sources do not say.
struct AssumedRecompute {
  size_t none = 0, modules = 0, layers = 0;
  void add(Recompute recompute) {
    ++(recompute == Recompute::none ? none : recompute == Recompute::selective ? modules : layers);
  }
  std::string sentence() const {
    return fmt::format(
        "{} runs do not say what was recomputed; as little as makes them fit is assumed, for time and memory: nothing "
        "in "
        "{}, cheap modules in {}, layers in {}",
        none + modules + layers, none, modules, layers);
  }
};

// "peak memory of 38 runs: median error 4.1%, mean 5.2%, bias -1.3%".
std::string peaks_note(std::span<const PredictedRow> peaks) {
  const ErrorSummary errors = summarize_errors(peaks);
  return fmt::format(
      "peak of allocated memory, {} runs: mean error {:.1f}%, median {:.1f}%, largest tenth from {:.1f}%, "
      "bias {:+.1f}%",
      errors.n, errors.mape, errors.median_ape, errors.p90_ape, errors.bias);
}

}  // namespace

Validation validate_training(const TrainingValidationRequest& request, TrainingCaseLibrary& library,
                             const ScoredTrainingSink& sink) {
  TrainingRowReader rows(request.data);
  const size_t group_column = rows.csv().column(request.group_by.empty() ? "source" : request.group_by);
  Validation validation;
  ValidationTally tally(20e-6);
  size_t runs = 0, too_large = 0;
  std::vector<PredictedRow> peaks;
  AssumedRecompute assumed;
  const auto skip = [&](size_t row, std::string why) {
    validation.skipped.push_back({.file = rows.csv().source(), .row = row, .why = std::move(why)});
  };
  while (rows.next()) {
    const auto start = std::chrono::steady_clock::now();
    const TrainingRow row = rows.read();
    if (!is_wanted(request.sources, row.source) || !is_wanted(request.models, row.model) ||
        !is_wanted(request.gpus, row.gpu)) {
      continue;
    }
    std::string why;
    const std::optional<TrainingCase> run = library.find(row, request.stack, why);
    if (!run) {
      skip(row.row, std::move(why));
      continue;
    }
    const TrainingStack& stack = library.stacks()[run->stack];
    const TrainingQuestion question = library.question_of(*run);
    std::optional<TrainingEstimate> estimate;
    try {
      estimate = estimate_training(question, *run->machine);
    } catch (const InputError& error) {
      skip(row.row, error.sentence());
      continue;
    }
    const IterationEstimate& predicted = estimate->iteration;
    ++runs;
    if (!estimate->fits) ++too_large;
    if (!says_recompute(row)) assumed.add(run->spec.plan.recompute);
    const std::optional<double> measured = measured_seconds(row, run->spec.job.model);
    if (!measured) {
      skip(row.row, fmt::format("no time of a step: {} is given", printable(row.primary)));
      continue;
    }
    const Bytes allocated = allocated_bytes(question);
    if (row.peak_allocated_gb) {
      peaks.push_back({.measured = 1e9 * *row.peak_allocated_gb, .predicted = allocated.value()});
    }
    const std::string group(rows.csv().cell(group_column));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    const Estimate& seconds = predicted.seconds;
    tally.add(group, {.measured = *measured, .predicted = seconds.value, .low = seconds.low, .high = seconds.high},
              spent.count());
    if (sink) {
      sink({.run = &*run,
            .stack = stack.name,
            .group = group,
            .measured_s = *measured,
            .predicted = &predicted,
            .memory = estimate->memory.most().total(),
            .allocated = allocated,
            .fits = estimate->fits});
    }
  }
  tally.write(validation);
  if (runs > 0) {
    validation.notes.push_back(fmt::format("{} of {} runs ({:.1f}%) are said not to fit in the memory of their devices",
                                           too_large, runs,
                                           100 * static_cast<double>(too_large) / static_cast<double>(runs)));
  }
  if (!peaks.empty()) validation.notes.push_back(peaks_note(peaks));
  if (assumed.none + assumed.modules + assumed.layers > 0) validation.notes.push_back(assumed.sentence());
  return validation;
}

}  // namespace foretoken
