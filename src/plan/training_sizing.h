// How many devices a training job needs: the fastest plan of each number of them, and the number that meets a goal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/training_search.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

enum class SizingGoal : uint8_t { speed, fewest_devices, cost };
std::vector<std::string> sizing_goal_names();
std::optional<SizingGoal> sizing_goal_from_name(std::string_view name);
std::string_view sizing_goal_name(SizingGoal goal);

// Of a long run.
struct SizingLimits {
  std::optional<double> days, usd;
};

struct JobSize {
  int64_t devices = 0;
  // Where a plan fits.
  std::optional<TrainingSearchResult> search;
  std::optional<TrainingEstimate> estimate;  // of the fastest plan
  // Where none does; neither: none divides evenly.
  std::optional<NearestPlan> nearest;
};

struct JobSizing {
  SizingGoal goal = SizingGoal::speed;
  SizingLimits limits;
  std::vector<JobSize> sizes;  // fewest devices first
  std::optional<size_t> chosen;
  // The choice where the limits must hold even at the far end of the interval.
  std::optional<size_t> cautious;
};

bool keeps_limits(const JobSize& size, const SizingLimits& limits);

// Parts of a node, every number of nodes up to 16, then eight numbers up to each power of two, and `most` itself.
std::vector<int64_t> sizes_to_try(int64_t devices_of_node, int64_t most);

// The question on fewer devices.
TrainingQuestion on_devices(const TrainingQuestion& question, int64_t devices);

// On at most `question.devices`. Limits and the goal of cost need `question.run`; a limit or goal of cost its price.
// InputError where no number of devices has a valid plan.
JobSizing size_training(const TrainingQuestion& question, const MachineModels& machine,
                        const TrainingPlanOptions& options, SizingGoal goal, const SizingLimits& limits,
                        const std::function<void(int64_t devices)>& told = {});

}  // namespace foretoken
