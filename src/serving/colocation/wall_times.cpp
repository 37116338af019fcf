#include "serving/colocation/wall_times.h"

#include <algorithm>
#include <cmath>

namespace foretoken {

void WallTimes::request_ended(const RequestRecord& record) {
  RequestRecord told = record;
  if (record.outcome == RequestOutcome::completed) {
    told.queued = clock.first_shown(record.queued);
    told.scheduled = clock.last_shown(record.scheduled);
    told.first_token = clock.first_shown(record.first_token);
    if (record.answered > 0) told.answered = clock.first_shown(record.answered);
    told.last_token = clock.first_shown(record.last_token);
  }
  observer_->request_ended(told);
  entered_.erase(record.id);
}

void WallTimes::step_ran(const StepRecord& step) {
  last_step_ = step;
  last_step_.begin = clock.last_shown(step.begin);
  last_step_.end = clock.first_shown(step.end);
  // From the token before, which came when the step could have begun.
  const double before = to_seconds(last_step_.end - clock.first_shown(step.begin)).value();
  const double alone = to_seconds(step.end - step.begin).value();
  stretch_ = before / alone;
  alone_s += alone;
  busy_s += before;
  observer_->step_ran(last_step_);
  forget();
}

void WallTimes::token_gaps(Picoseconds gap, int64_t count) {
  observer_->token_gaps(static_cast<Picoseconds>(std::llround(static_cast<double>(gap) * stretch_)), count);
}

void WallTimes::request_stepped(const RequestStep& own, const StepRecord& /*step*/) {
  observer_->request_stepped(own, last_step_);
}

void WallTimes::forget() {
  constexpr size_t few = 1024;
  if (clock.pieces() < few + 2 * pieces_kept_) return;
  Picoseconds oldest = clock.engine_time(std::max(last_step_.end, clock.last_change()));
  for (const auto& [id, engine] : entered_) oldest = std::min(oldest, engine);
  clock.forget_before(oldest);
  pieces_kept_ = clock.pieces();
}

}  // namespace foretoken
