// Requests on their way through stages to the engines.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "serving/stages/stage.h"
#include "serving/steps/step_bound.h"

namespace foretoken {

// A request of `inner` arrives at the engines when it has left the last stage. Its own arrival stays that at the first,
// so that latencies count what happens here.
class StagedSource final : public RequestSource {
 public:
  StagedSource(std::span<const StageConfig> stages, StepBound bound, RequestSource& inner);

  std::optional<Picoseconds> next_arrival() override;
  Request next() override;
  void nothing_ends_before(Picoseconds when) override { until_ = when; }
  void ended(int64_t id, Picoseconds when) override { inner_->ended(id, when); }
  void rejected(int64_t id, Picoseconds when) override { inner_->rejected(id, when); }

  std::vector<StageUse> uses() const;

 private:
  struct Ready {
    Request request;
    Picoseconds when = 0;
  };

  void move_on();
  void enter(size_t stage, Request&& request);

  RequestSource* inner_;
  std::vector<RequestStage> stages_;
  std::deque<Ready> ready_;  // through all stages, in this order
  Picoseconds now_ = 0;
  Picoseconds until_ = 0;
};

}  // namespace foretoken
