#include "serving/results/goal_counts.h"

namespace foretoken {

GoalCounts::GoalCounts(const std::vector<Picoseconds>& goals) {
  for (const Picoseconds goal : goals) counts_.push_back({.goal = goal});
}

void GoalCounts::request_ended(const RequestRecord& record) {
  if (counts_.empty()) return;
  GoalCount& count = counts_[place_by_priority(record.priority, counts_.size())];
  if (record.outcome == RequestOutcome::rejected) {
    ++count.rejected;
  } else {
    ++(record.ttft() <= count.goal ? count.met : count.late);
  }
}

}  // namespace foretoken
