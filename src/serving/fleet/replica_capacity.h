// What one replica can serve for long, in closed form.
#pragma once

#include <optional>

#include "serving/scheduling/scheduler.h"
#include "serving/steps/step_times.h"

namespace foretoken {

enum class ReplicaWork : uint8_t { all, prompts, decodes };  // the latter two of separate workers

struct CapacityQuestion {
  double input_tokens = 0, output_tokens = 0;  // means
  std::optional<double> tpot_s = {};           // goal; nothing = as many as run at once
  ReplicaWork work = ReplicaWork::all;
  double tokens_per_decode = 1;  // that come out of a decode's step, in the mean
  int64_t verified_tokens = 0;   // drafts that each decode computes for them; 0 = they cost nothing
  // Nobody waits for company: each prompt has steps of its own, and ranks in lock step wait for those of each other.
  // Else steps are full of prompts, of all ranks at once.
  bool prompts_alone = false;
};

// Requests/s of an engine, or of a rank of several in lock step, that mixes prompts and decodes in its steps. With b
// sequences decoding, t(b) for a step of them and P(b) that a prompt adds to it, a token takes t(b) + b P(b) / (n - 1)
// where outputs have n: beside it run the prompts of those that replace the sequences that end. The largest b that
// meets the goal, may run and fits in the cache, at least one; never more than the prompts alone allow. Each stage of a
// pipeline has a batch of its own.
double requests_per_second(StepTimes& times, SchedulerOptions options, const CapacityQuestion& question);

}  // namespace foretoken
