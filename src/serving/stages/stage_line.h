// Requests on their way through stages to the engines.
#pragma once

#include <span>
#include <vector>

#include "serving/requests/event_loop.h"
#include "serving/stages/stage.h"
#include "serving/steps/step_bound.h"

namespace foretoken {

// A request is handed on when it has left the last stage. Its arrival stays that at the first, so that latencies count
// what happens here.
class StageLine final : public Component, public RequestTaker {
 public:
  StageLine(std::span<const StageConfig> stages, StepBound bound, RequestTaker& behind);

  Picoseconds next_event(Picoseconds now) override;
  void advance(Picoseconds now) override;
  void accept(Request&& request, Picoseconds now) override { enter(0, std::move(request), now); }

  std::vector<StageUse> uses() const;

 private:
  void enter(size_t stage, Request&& request, Picoseconds now);

  RequestTaker* behind_;
  std::vector<RequestStage> stages_;
};

}  // namespace foretoken
