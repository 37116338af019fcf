// Parts that `serve` adds to its answer, each in text and JSON, where the run has them.
#pragma once

#include <string_view>
#include <vector>

#include "app/cli/grammar/command.h"
#include "report/parts/energy_report.h"
#include "report/serving/lora_report.h"
#include "serving/engine/engine_builder.h"
#include "serving/results/goal_counts.h"
#include "serving/results/priority_metrics.h"
#include "serving/results/thinking_metrics.h"
#include "serving/serving_run.h"

namespace foretoken {

// What a reader should know of the models: assumed formats, parts that are not modelled, an acceptance that is not
// known.
// `more`: what the reader should know first.
void add_notes(Answer& answer, const std::vector<ReplicaGroup>& groups, const ServingMetrics& metrics,
               const std::vector<std::string>& more);
void add_energy(Answer& answer, const EnergyReport& report, const std::vector<ClockTrial>& trials);
void add_goals(Answer& answer, const GoalCounts& goals);
void add_fleet(Answer& answer, const FleetConfig& config, const SimulationTotals& totals);
// Several on one device; `latencies` by the number of the model.
void add_models(Answer& answer, std::string_view sharing, const std::vector<ReplicaGroup>& groups,
                const ServingRun& run, const std::vector<PriorityLatencies>& latencies,
                const std::vector<double>& percentiles);
// Of the first group that has adapters.
void add_adapters(Answer& answer, const std::vector<ReplicaGroup>& groups, const LoraCounts& counts,
                  const ServingRun& run);
void add_stages(Answer& answer, const ServingRun& run, const std::vector<double>& percentiles);
void add_thinking(Answer& answer, const ThinkingSummary& thinking, const std::vector<double>& percentiles);
void add_breakdown(Answer& answer, const std::vector<ReplicaGroup>& groups, const std::vector<StepMix>& mixes);
void add_memory(Answer& answer, const std::vector<ReplicaGroup>& groups);

}  // namespace foretoken
