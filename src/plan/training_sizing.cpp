#include "plan/training_sizing.h"

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "base/kinds.h"

namespace foretoken {
namespace {

struct GoalKind {
  std::string_view name;
  SizingGoal goal;
};
constexpr GoalKind goal_kinds[] = {
    {.name = "speed", .goal = SizingGoal::speed},
    {.name = "fewest-gpus", .goal = SizingGoal::fewest_devices},
    {.name = "cost", .goal = SizingGoal::cost},
};

enum class LimitEnd : uint8_t { value, high };

bool is_within(const Estimate& estimate, const std::optional<double>& limit, LimitEnd bound) {
  return !limit || (bound == LimitEnd::value ? estimate.value : estimate.high) <= *limit;
}

bool keeps(const JobSize& size, const SizingLimits& limits, LimitEnd bound) {
  if (!size.estimate) return false;
  if (!limits.days && !limits.usd) return true;
  const TrainingRun& run = size.estimate->run.value().run;
  return is_within(run.days, limits.days, bound) && (!limits.usd || is_within(run.usd.value(), limits.usd, bound));
}

// Less is better.
double badness(const JobSize& size, SizingGoal goal) {
  const TrainingEstimate& estimate = *size.estimate;
  switch (goal) {
    case SizingGoal::speed:
      return estimate.run ? estimate.run->run.days.value : estimate.iteration.seconds.value;
    case SizingGoal::fewest_devices:
      return static_cast<double>(size.devices);
    case SizingGoal::cost:
      return estimate.run.value().run.usd.value().value;
  }
  return 0;
}

// Of equal ones the first, which has fewer devices.
std::optional<size_t> best_size(const JobSizing& sizing, LimitEnd bound) {
  std::optional<size_t> best;
  for (size_t i = 0; i < sizing.sizes.size(); ++i) {
    if (!keeps(sizing.sizes[i], sizing.limits, bound)) continue;
    if (!best || badness(sizing.sizes[i], sizing.goal) < badness(sizing.sizes[*best], sizing.goal)) best = i;
  }
  return best;
}

}  // namespace

std::vector<std::string> sizing_goal_names() {
  return kind_names(goal_kinds);
}

std::optional<SizingGoal> sizing_goal_from_name(std::string_view name) {
  const auto* const kind = find_kind(goal_kinds, name);
  return kind == nullptr ? std::nullopt : std::optional(kind->goal);
}

std::string_view sizing_goal_name(SizingGoal goal) {
  return goal_kinds[static_cast<size_t>(goal)].name;
}

bool keeps_limits(const JobSize& size, const SizingLimits& limits) {
  return keeps(size, limits, LimitEnd::value);
}

std::vector<int64_t> sizes_to_try(int64_t devices_of_node, int64_t most) {
  std::vector<int64_t> counts = {most};
  for (int64_t part = 1; part < devices_of_node; part *= 2) counts.push_back(part);
  constexpr int64_t numbers_of_octave = 8;
  for (int64_t nodes = 1, step = 1; nodes * devices_of_node <= most; nodes += step) {
    counts.push_back(nodes * devices_of_node);
    if (nodes == 2 * numbers_of_octave * step) step *= 2;
  }
  counts.erase(std::remove_if(counts.begin(), counts.end(), [&](int64_t count) { return count > most; }), counts.end());
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

TrainingQuestion on_devices(const TrainingQuestion& question, int64_t devices) {
  TrainingQuestion fewer = question;
  fewer.devices = devices;
  if (fewer.run) {
    const int64_t of_node = devices_per_node(question.cluster);
    const int64_t nodes = (devices + of_node - 1) / of_node;
    fewer.run->checkpoints.storage_bytes_per_second *=
        static_cast<double>(nodes) / static_cast<double>(question.cluster.node_count);
  }
  return fewer;
}

JobSizing size_training(const TrainingQuestion& question, const MachineModels& machine,
                        const TrainingPlanOptions& options, SizingGoal goal, const SizingLimits& limits,
                        const std::function<void(int64_t devices)>& told) {
  JobSizing sizing{.goal = goal, .limits = limits};
  std::exception_ptr invalid;
  for (const int64_t devices : sizes_to_try(devices_per_node(question.cluster), question.devices)) {
    if (told) told(devices);
    JobSize size{.devices = devices};
    TrainingQuestion fewer = on_devices(question, devices);
    try {
      size.search = plan_training(fewer, machine, options);
    } catch (const NoTrainingPlanFits& error) {
      size.nearest = error.nearest();
    } catch (const InputError&) {
      invalid = std::current_exception();
    }
    if (size.search) {
      fewer.plan = size.search->best.front().plan;
      if (size.search->offloads_optimizer) fewer.formats.offloaded_optimizer = 1;
      size.estimate = estimate_training(fewer, machine);
    }
    sizing.sizes.push_back(std::move(size));
  }
  const bool none_is_valid = std::all_of(sizing.sizes.begin(), sizing.sizes.end(),
                                         [](const JobSize& size) { return !size.estimate && !size.nearest; });
  if (none_is_valid) std::rethrow_exception(invalid);
  sizing.chosen = best_size(sizing, LimitEnd::value);
  sizing.cautious = best_size(sizing, LimitEnd::high);
  return sizing;
}

}  // namespace foretoken
