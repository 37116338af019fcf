// Where the time of a run goes: what a slow request waits for, and how busy the devices are.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hardware/device.h"
#include "serving/results/ttft_ranking.h"
#include "serving/results/typical_steps.h"

namespace foretoken {

// Of the requests around a percentile of TTFT, in the mean: the parts make up the whole.
struct TtftParts {
  double percentile = 99;
  double ttft_ms = 0;
  double queue_ms = 0;     // from the arrival to the first step
  double prefill_ms = 0;   // kernels and communication of the steps that compute
                           // the prompt, and pauses between them
  double host_ms = 0;      // the device waits for the host in these steps
  double transfer_ms = 0;  // of two pools: from the end of the prompt to the first token
};

struct RunExplanation {
  TtftParts ttft;
  double busy_share = 0;  // of the time that devices run steps
  // Of all devices, idle time included: model FLOPs of their peak, and weights and cache read of their bandwidth.
  // Nothing where steps have no operators, as with drafts.
  std::optional<double> model_flops_utilization, memory_bandwidth_utilization;
};

// When the last step that computed a request's prompt ended, before its first token.
class PromptEnds final : public RunObserver {
 public:
  // Watching every step of every request takes time: only where somebody asks for the ends.
  explicit PromptEnds(bool is_needed, std::function<void()> check_wanted = {})
      : is_needed_(is_needed), check_wanted_(std::move(check_wanted)) {}
  bool watches(int64_t request) const override;
  void request_stepped(const RequestStep& own, const StepRecord& step) override;
  void step_ran(const StepRecord& step) override;
  bool is_needed() const { return is_needed_; }
  // No later than the first token: a preempted request computes its prompt again.
  Picoseconds end_of(const RequestRecord& record) const;

 private:
  bool is_needed_;
  std::function<void()> check_wanted_;
  std::map<int64_t, Picoseconds> ends_;
};

// Equal replicas of a run; prompts are computed by the first of them.
struct ExplainedPool {
  const Device* device = nullptr;
  double devices_each = 1;
  double busy_seconds = 0;         // of all replicas together
  double stages = 1;               // of a pipeline, whose steps overlap: each device runs a part of every one
  std::vector<TypicalStep> steps;  // empty where steps have no operators
};

// `device_seconds`: of all devices, from the first request to the last token. Nothing where no request completed.
std::optional<RunExplanation> explain_run(const TtftRanking& ranking, const PromptEnds& prompts, double percentile,
                                          std::span<const ExplainedPool> pools, double device_seconds);

}  // namespace foretoken
