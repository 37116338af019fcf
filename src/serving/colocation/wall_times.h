// Tells an observer of an engine in the time on the wall.
#pragma once

#include <cstdint>
#include <map>

#include "serving/colocation/colocation.h"
#include "serving/colocation/engine_clock.h"
#include "serving/requests/request.h"

namespace foretoken {

class WallTimes final : public RunObserver {
 public:
  explicit WallTimes(RunObserver& observer) : observer_(&observer) {}

  EngineClock clock;
  // A request entered the engine, whose clock shows `engine`: what came before is needed no longer than it.
  void entered(int64_t id, Picoseconds engine) { entered_.emplace(id, engine); }

  void request_ended(const RequestRecord& record) override;
  void step_ran(const StepRecord& step) override;
  void token_gaps(Picoseconds gap, int64_t count) override;
  bool watches(int64_t request) const override { return observer_->watches(request); }
  void request_stepped(const RequestStep& own, const StepRecord& step) override;
  void drafts_verified(int64_t drafts, int64_t accepted) override { observer_->drafts_verified(drafts, accepted); }

  double alone_s = 0, busy_s = 0;  // DeviceUse

 private:
  void forget();

  RunObserver* observer_;
  std::map<int64_t, Picoseconds> entered_;  // by request
  size_t pieces_kept_ = 0;                  // when some were last forgotten
  StepRecord last_step_;
  double stretch_ = 1;  // of gaps that end with the last step
};

}  // namespace foretoken
