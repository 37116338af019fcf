#include "training/validate/validate_training.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/error.h"
#include "training/memory/training_memory.h"

namespace foretoken {
namespace {

bool is_wanted_run(const std::vector<std::string>& filter, const std::string& value) {
  return filter.empty() || std::find(filter.begin(), filter.end(), value) != filter.end();
}

}  // namespace

Validation validate_training(const TrainingValidationRequest& request, TrainingCaseLibrary& library,
                             const ScoredTrainingSink& sink) {
  TrainingRowReader rows(request.data);
  const size_t group_column = rows.csv().column(request.group_by.empty() ? "source" : request.group_by);
  Validation validation;
  ValidationTally tally(20e-6);
  size_t runs = 0, too_large = 0;
  const auto skip = [&](size_t row, std::string why) {
    validation.skipped.push_back({.file = rows.csv().source(), .row = row, .why = std::move(why)});
  };
  while (rows.next()) {
    const auto start = std::chrono::steady_clock::now();
    const TrainingRow row = rows.read();
    if (!is_wanted_run(request.sources, row.source) || !is_wanted_run(request.models, row.model) ||
        !is_wanted_run(request.gpus, row.gpu)) {
      continue;
    }
    std::string why;
    const std::optional<TrainingCase> run = library.find(row, request.stack, why);
    if (!run) {
      skip(row.row, std::move(why));
      continue;
    }
    const TrainingStack& stack = library.stacks()[run->stack];
    const IterationEstimate predicted = IterationModel(run->job, stack, run->machine->machine()).estimate(run->plan);
    const Bytes memory = memory_of(*run, stack);
    const std::optional<Bytes> capacity = training_capacity(run->machine->device());
    const bool fits_device = !capacity || fits(memory, *capacity);
    ++runs;
    if (!fits_device) ++too_large;
    if (!row.iter_time_s) {
      skip(row.row, fmt::format("no time of a step: {} is given", printable(row.primary)));
      continue;
    }
    const std::string group(rows.csv().cell(group_column));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    const Estimate& seconds = predicted.seconds;
    tally.add(group,
              {.measured = *row.iter_time_s, .predicted = seconds.value, .low = seconds.low, .high = seconds.high},
              spent.count());
    if (sink) {
      sink({.run = &*run,
            .stack = stack.name,
            .group = group,
            .measured_s = *row.iter_time_s,
            .predicted = &predicted,
            .memory = memory,
            .fits = fits_device});
    }
  }
  tally.write(validation);
  if (runs > 0) {
    validation.notes.push_back(fmt::format("{} of {} runs ({:.1f}%) are said not to fit in the memory of their devices",
                                           too_large, runs,
                                           100 * static_cast<double>(too_large) / static_cast<double>(runs)));
  }
  return validation;
}

}  // namespace foretoken
