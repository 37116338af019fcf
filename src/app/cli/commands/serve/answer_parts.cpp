#include "app/cli/commands/serve/answer_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/cli/flags/replica_flags.h"
#include "model/step.h"
#include "report/parts/model_notes.h"
#include "report/parts/table.h"
#include "report/plan/goal_report.h"
#include "report/serving/colocation_report.h"
#include "report/serving/fleet_report.h"
#include "report/serving/request_shapes_report.h"
#include "report/serving/sender_note.h"
#include "report/serving/serving_breakdown.h"
#include "report/serving/speculation_report.h"
#include "report/training/memory_report.h"

namespace foretoken {

void add_notes(Answer& answer, const std::vector<ReplicaGroup>& groups, const ServingMetrics& metrics,
               const std::vector<std::string>& more) {
  std::vector<std::string> notes = more;
  const ReplicaGroup& first = groups.front();
  if (groups.size() == 1 && !first.drafter) {  // one kind of server, whose steps make one token for each request
    const double servers = static_cast<double>(first.count) / static_cast<double>(first.data_parallel_ranks);
    std::string note =
        sender_note(first.stack.name, first.config.front.piece, first.config.stream_interval, servers, metrics);
    if (!note.empty()) notes.push_back(std::move(note));
  }
  for (const ReplicaGroup& group : groups) {
    const auto add = [&](const std::string& note) {
      if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    };
    for (const std::string& note : group.model.notes) add(note);
    add(shorter_context_note(group.memory));
    add(cut_scale_blocks(group.model, group.plan));
    const std::string assumed = group.drafter ? assumed_acceptance_note(group.drafter->speculation()) : "";
    if (!assumed.empty()) notes.push_back(assumed);
  }
  if (notes.empty()) return;
  Json list = Json::array();
  for (const std::string& note : notes) list.push(note);
  answer.text = model_warnings_text(notes) + answer.text + notes_text(notes);
  answer.json.set("notes", std::move(list));
}

void add_energy(Answer& answer, const EnergyReport& report, const std::vector<ClockTrial>& trials) {
  answer.text += "\n" + energy_text(report);
  answer.json.set("energy", energy_json(report));
  if (trials.empty()) return;
  answer.text += "\n" + clock_search_text(trials);
  answer.json.set("clock_search", clock_search_json(trials));
}

void add_goals(Answer& answer, const GoalCounts& goals) {
  if (goals.counts().empty()) return;
  answer.text += "\n" + goals_text(goals.counts());
  answer.json.set("ttft_goals", goals_json(goals.counts()));
}

void add_fleet(Answer& answer, const FleetConfig& config, const SimulationTotals& totals) {
  const FleetReport report{.config = config, .totals = totals.fleet, .end_s = to_seconds(totals.end).value()};
  answer.text += "\n" + fleet_text(report);
  answer.json.set("fleet", fleet_json(report));
}

void add_models(Answer& answer, std::string_view sharing, const std::vector<ReplicaGroup>& groups,
                const ServingRun& run, const std::vector<PriorityLatencies>& latencies,
                const std::vector<double>& percentiles) {
  ColocationReport report{.sharing = sharing_from_name(std::string(sharing)),
                          .engines = {},
                          .duration_s = run.metrics.duration_s,
                          .percentiles = percentiles};
  for (size_t i = 0; i < groups.size(); ++i) {
    ColocationReport::Engine engine{
        .model = groups[i].model.name,
        .kv_blocks = groups[i].config.options.num_gpu_blocks * groups[i].config.options.lock_step_ranks,
        .latencies = {.ttft = latency_summary(LatencyDistribution(), percentiles),
                      .tpot = latency_summary(LatencyDistribution(), percentiles),
                      .e2el = latency_summary(LatencyDistribution(), percentiles)},
        .use = run.totals.device_use[i]};
    for (const PriorityLatencies& one : latencies) {
      if (one.priority == static_cast<int32_t>(i)) engine.latencies = one;
    }
    report.engines.push_back(std::move(engine));
  }
  answer.text += "\n" + colocation_text(report);
  answer.json.set("colocation", colocation_json(report));
}

void add_adapters(Answer& answer, const std::vector<ReplicaGroup>& groups, const LoraCounts& counts,
                  const ServingRun& run) {
  const auto group =
      std::find_if(groups.begin(), groups.end(), [](const ReplicaGroup& one) { return one.lora.has_value(); });
  if (group == groups.end()) return;
  const LoraReport report{.settings = group->lora->settings(),
                          .slot_bytes = group->lora->slot_bytes(),
                          .adapter_bytes = group->lora->adapter_bytes(),
                          .loading = group->lora->loading(),
                          .counts = counts,
                          .duration_s = run.metrics.duration_s};
  answer.text += "\n" + lora_text(report);
  answer.json.set("lora", lora_json(report));
}

void add_stages(Answer& answer, const ServingRun& run, const std::vector<double>& percentiles) {
  answer.text += "\n" + stages_text(run.totals.stages, run.metrics.duration_s, percentiles);
  answer.json.set("stages", stages_json(run.totals.stages, run.metrics.duration_s, percentiles));
}

void add_thinking(Answer& answer, const ThinkingSummary& thinking, const std::vector<double>& percentiles) {
  answer.text += "\n" + thinking_text(thinking, percentiles);
  answer.json.set("thinking", thinking_json(thinking, percentiles));
}

void add_breakdown(Answer& answer, const std::vector<ReplicaGroup>& groups, const std::vector<StepMix>& mixes) {
  std::vector<OperatorAccount> pools;
  for (size_t i = 0; i < groups.size(); ++i) {
    pools.push_back(operator_account_of(groups[i], mixes[i], "--breakdown"));
  }
  answer.text += "\n" + serving_breakdown_text(pools, "Where the time went (all replicas, all steps)");
  answer.json.set("breakdown", serving_breakdown_json(pools));
}

void add_memory(Answer& answer, const std::vector<ReplicaGroup>& groups) {
  Json all = Json::array();
  for (const ReplicaGroup& group : groups) {
    const CacheDemand demand{.sequences = group.config.options.max_num_seqs,
                             .tokens_each = group.memory.flags.max_model_len};
    answer.text += "\n" + serving_memory_text(group.memory, demand);
    all.push(serving_memory_json(group.memory, demand));
  }
  answer.json.set("serving_memory", groups.size() == 1 ? all.items().front() : all);
}

}  // namespace foretoken
