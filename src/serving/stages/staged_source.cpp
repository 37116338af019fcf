#include "serving/stages/staged_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serving/requests/next_event.h"

namespace foretoken {

StagedSource::StagedSource(std::span<const StageConfig> stages, StepBound bound, RequestSource& inner)
    : inner_(&inner) {
  stages_.reserve(stages.size());
  for (const StageConfig& config : stages) stages_.emplace_back(config, bound);
}

std::optional<Picoseconds> StagedSource::next_arrival() {
  move_on();
  if (ready_.empty()) return std::nullopt;
  return ready_.front().when;
}

Request StagedSource::next() {
  ensure(!ready_.empty(), "a request is taken only where one is known");
  Request request = std::move(ready_.front().request);
  ready_.pop_front();
  return request;
}

// Events in order of time, until a request has left the last stage. Later stages go first: what leaves one at this
// instant is there before others arrive.
void StagedSource::move_on() {
  while (ready_.empty()) {
    // A transfer between pools may end a request before the time that was promised.
    Picoseconds when = std::max(inner_->next_arrival().value_or(end_of_time), now_);
    size_t stage = stages_.size();
    for (size_t i = 0; i < stages_.size(); ++i) {
      const Picoseconds event = stages_[i].next_event().value_or(end_of_time);
      if (event <= when) {
        when = event;
        stage = i;
      }
    }
    if (when > until_ || when == end_of_time) return;
    now_ = when;
    if (stage == stages_.size()) {
      enter(0, inner_->next());
    } else {
      for (Request& request : stages_[stage].advance(now_)) enter(stage + 1, std::move(request));
    }
  }
}

void StagedSource::enter(size_t stage, Request&& request) {
  while (stage < stages_.size() && !stages_[stage].serves(request)) ++stage;
  if (stage == stages_.size()) {
    ready_.push_back({std::move(request), now_});
  } else {
    stages_[stage].arrive(std::move(request), now_);
  }
}

std::vector<StageUse> StagedSource::uses() const {
  std::vector<StageUse> uses;
  for (const RequestStage& stage : stages_) uses.push_back(stage.use());
  return uses;
}

}  // namespace foretoken
