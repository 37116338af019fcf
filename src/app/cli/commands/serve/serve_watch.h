// What `serve` watches of its run besides the metrics.
#pragma once

#include <optional>
#include <vector>

#include "app/cli/commands/serve/serve_flags.h"
#include "app/cli/output/progress.h"
#include "report/page/serving_parts.h"
#include "report/serving/lora_report.h"
#include "serving/results/arrival_span.h"
#include "serving/results/goal_counts.h"
#include "serving/results/priority_metrics.h"
#include "serving/results/request_life.h"
#include "serving/results/run_explanation.h"
#include "serving/results/thinking_metrics.h"
#include "serving/results/ttft_ranking.h"

namespace foretoken {

class ShownProgress : public RunObserver {
 public:
  void request_ended(const RequestRecord& record) override;
  void step_ran(const StepRecord& /*record*/) override { check_still_wanted(); }

 private:
  int64_t each_ = has_progress_listener() ? 100 : 100'000;  // a terminal shows a line for each
  int64_t ended_ = 0;
};

// The groups outlive it.
struct ServeWatch {
  ResultFiles files;
  ShownProgress progress;
  ArrivalSpan arrivals;
  PriorityMetrics priorities, models;  // models: by the group of the replica
  LoraCounts adapters;
  RequestLife life;
  ThinkingMetrics thinking;
  GoalCounts ttft_goals;
  std::vector<StepMix> mixes;  // by group
  LatencyCurves curves;
  TtftRanking slowest;  // for a page, as the next
  PromptEnds prompts;
  std::optional<EnergyMeter> meter;

  ServeWatch(const ServeFlags& flags, const std::vector<ReplicaGroup>& groups, const ServingRunRequest& request,
             bool metered);
  // Those that the flags ask for; they look into this.
  std::vector<RunObserver*> observers(const ServeFlags& flags);
};

}  // namespace foretoken
