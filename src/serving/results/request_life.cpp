#include "serving/results/request_life.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {

std::string_view life_phase_name(LifePhase phase) {
  switch (phase) {
    case LifePhase::queue:
      return "queue";
    case LifePhase::prefill:
      return "prefill";
    case LifePhase::recompute:
      return "recompute";
    case LifePhase::decode:
      return "decode";
    case LifePhase::pause:
      return "pause";
  }
  throw InternalError("every phase has a name");
}

void RequestLife::request_stepped(const RequestStep& own, const StepRecord& step) {
  if (own.request != request_) return;
  steps_.step_ran(step);
  const bool first = parts_.empty();
  // Another request may have brought more of a shared prompt into the cache meanwhile.
  const bool preempted = !first && own.context_tokens != computed_;
  lost_some_ = !own.decodes && (lost_some_ || own.context_tokens < computed_);
  const LifePhase phase = own.decodes ? LifePhase::decode : lost_some_ ? LifePhase::recompute : LifePhase::prefill;
  if (!first && step.begin > parts_.back().end) {
    parts_.push_back({.phase = LifePhase::pause, .begin = parts_.back().end, .end = step.begin});
  }
  if (first || parts_.back().phase != phase || preempted) {
    const int64_t cached = first || preempted ? own.context_tokens : 0;
    // Chunks of a prompt may follow each other through pipeline stages.
    const Picoseconds begin = first ? step.begin : std::max(step.begin, parts_.back().end);
    parts_.push_back({.phase = phase, .begin = begin, .end = begin, .cached_tokens = cached});
  }
  LifePart& part = parts_.back();
  part.end = step.end;
  part.steps += step.repeats;
  part.tokens += own.new_tokens * step.repeats;
  computed_ = own.context_tokens + own.new_tokens * step.repeats;
}

void RequestLife::request_ended(const RequestRecord& record) {
  if (record.id != request_) return;
  has_ended_ = true;
  record_ = record;
  if (record.outcome == RequestOutcome::rejected) return;
  parts_.insert(parts_.begin(), {.phase = LifePhase::queue, .begin = record.arrival, .end = parts_.front().begin});
}

std::array<LifePart, life_phases> RequestLife::totals() const {
  std::array<LifePart, life_phases> totals;
  std::array<bool, life_phases> seen{};
  for (const LifePart& part : parts_) {
    const auto index = static_cast<size_t>(part.phase);
    LifePart& total = totals[index];
    if (!seen[index]) total = {.phase = part.phase, .begin = part.begin, .end = part.begin};
    seen[index] = true;
    total.end += part.end - part.begin;
    total.steps += part.steps;
    total.tokens += part.tokens;
    total.cached_tokens += part.cached_tokens;
  }
  for (size_t i = 0; i < totals.size(); ++i) totals[i].phase = static_cast<LifePhase>(i);
  return totals;
}

}  // namespace foretoken
