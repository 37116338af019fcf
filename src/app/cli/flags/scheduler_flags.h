// The flags of an engine's scheduler; names as in vLLM, or in TensorRT-LLM where only that has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/grammar/options.h"
#include "serving/engine/engine_spec.h"

namespace foretoken {

struct SchedulerFlags {
  std::string scheduler;  // empty = the engine's
  std::string policy = "fcfs";
  std::vector<std::string> ttft_goals;  // ms, by priority
  bool prefix_caching = true, reserve_full_isl = true;
  std::optional<bool> chunked_prefill, async_scheduling;  // nothing = as the engine's release does it
  int64_t long_prefill = 0;
  int64_t batch_wait_iters = 0;
  double batch_wait_ratio = 0;
  double watermark = -1;  // below 0 = the scheduler's own

  void declare(Options& options);
  // InputError suggests the nearest name.
  std::string name(const std::string& engine) const;
  SchedulingChoices choices() const;
};

// InputError for a flag that was given although none of these schedulers reads it.
void refuse_unread_scheduler_flags(const Options& options, const std::vector<std::string>& schedulers);

}  // namespace foretoken
