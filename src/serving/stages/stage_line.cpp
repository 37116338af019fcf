#include "serving/stages/stage_line.h"

#include <algorithm>
#include <utility>

namespace foretoken {

StageLine::StageLine(std::span<const StageConfig> stages, StepBound bound, RequestTaker& behind)
    : Component(EventOrder::stages), behind_(&behind) {
  stages_.reserve(stages.size());
  for (const StageConfig& config : stages) stages_.emplace_back(config, bound);
}

Picoseconds StageLine::next_event(Picoseconds /*now*/) {
  Picoseconds next = end_of_time;
  for (const RequestStage& stage : stages_) next = std::min(next, stage.next_event().value_or(end_of_time));
  return next;
}

// Later stages go first: what leaves one at this instant is there before others arrive.
void StageLine::advance(Picoseconds now) {
  for (size_t i = stages_.size(); i-- > 0;) {
    if (stages_[i].next_event().value_or(end_of_time) > now) continue;
    for (Request& request : stages_[i].advance(now)) enter(i + 1, std::move(request), now);
    return;
  }
}

void StageLine::enter(size_t stage, Request&& request, Picoseconds now) {
  while (stage < stages_.size() && !stages_[stage].serves(request)) ++stage;
  if (stage == stages_.size()) {
    behind_->accept(std::move(request), now);
  } else {
    stages_[stage].arrive(std::move(request), now);
  }
}

std::vector<StageUse> StageLine::uses() const {
  std::vector<StageUse> uses;
  for (const RequestStage& stage : stages_) uses.push_back(stage.use());
  return uses;
}

}  // namespace foretoken
