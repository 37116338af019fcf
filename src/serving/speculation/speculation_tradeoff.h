// When speculative decoding pays: steps with and without it over batch sizes, by the closed form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/estimate.h"
#include "serving/speculation/speculation.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// Decodes alone, all with the same context.
struct SpeculationPoint {
  int64_t batch = 1, context = 0;
  Estimate plain_seconds;       // a step without drafts: one token each
  Estimate speculated_seconds;  // a step that verifies drafts, and the drafter's passes
  double verify_seconds = 0;    // of it, the target's
  Estimate tokens;              // expected of each sequence in such a step; an interval where the acceptance is unknown
  Estimate speedup;             // tokens x plain / speculated; both steps share part of their errors
};

// Speculative steps of an engine beside its plain ones.
struct SpeculationSteps {
  StepTimes* target = nullptr;      // not owned, as the others
  StepTimes* verified = nullptr;    // the target where it verifies drafts: graphs may hold other sizes
  StepTimes* speculated = nullptr;  // those and the drafter
  Speculation speculation;
};

SpeculationPoint speculation_point(const SpeculationSteps& steps, int64_t batch, int64_t context);

// The smallest batch up to `most` from which it no longer pays, by the value or one end of the interval of the
// speed-up; nothing where it pays at all of them. Found by halving, as if the speed-up only fell: with long contexts it
// may rise first (MagicDec, arXiv 2408.11049).
std::optional<int64_t> break_even_batch(const SpeculationSteps& steps, int64_t context, int64_t most,
                                        double Estimate::*end = &Estimate::value);

}  // namespace foretoken
