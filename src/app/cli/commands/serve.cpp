#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/commands/serve/answer_parts.h"
#include "app/cli/commands/serve/energy_runs.h"
#include "app/cli/commands/serve/explained_request.h"
#include "app/cli/commands/serve/serve_flags.h"
#include "app/cli/commands/serve/serve_page.h"
#include "app/cli/commands/serve/serve_watch.h"
#include "base/counted.h"
#include "base/text.h"
#include "report/parts/table.h"
#include "report/serving/first_token_note.h"
#include "report/serving/overload_note.h"
#include "report/training/memory_report.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

std::vector<std::string> schedulers_of(const std::vector<ReplicaGroup>& groups) {
  std::vector<std::string> schedulers;
  for (const ReplicaGroup& group : groups) {
    const bool known = std::find(schedulers.begin(), schedulers.end(), group.config.scheduler) != schedulers.end();
    if (!known) schedulers.push_back(group.config.scheduler);
  }
  return schedulers;
}

void note_sources(ServingReport& report, const std::vector<ReplicaGroup>& groups, const Library& library) {
  for (const ReplicaGroup& group : groups) {
    if (group.has_own_kernels) report.notes.add_kernels(group.models.kernels);
    report.notes.add_engine(group.memory.flags.engine, group.models.kernels.device());
    report.notes.add_deployment(library.deployment().get(), group.memory.flags.engine, group.models.kernels.device(),
                                group.model, group.plan);
    if (group.models.collectives) report.notes.add_network(*group.models.collectives);
  }
}

class ServeCommand : public Command {
 public:
  void declare(Options& options) override { flags_.declare(options); }

  Answer run(const Library& library) const override {
    try {
      return answer(library);
    } catch (const EngineDoesNotFit& error) {
      return does_not_fit(error.memory());
    }
  }

 private:
  Answer answer(const Library& library) const {
    flags_.check_use();
    const bool metered = flags_.energy.wanted(*flags_.options);
    flags_.parts(metered).check();
    ReplicaFlags replica = flags_.replica;
    replica.metered = metered;
    std::vector<ClockTrial> trials;
    if (replica.power.searches_clock()) {
      trials = try_clocks(flags_, replica, library);
      replica.power.clock = number_text(trials[best_clock(trials)].mhz);
    }
    const std::vector<ColocatedEngineFlags> colocated = flags_.colocation.read(replica, library.hardware());
    std::vector<ReplicaGroup> groups = flags_.groups_for_load(library, replica, colocated);
    refuse_unread_scheduler_flags(*flags_.options, schedulers_of(groups));
    StageList stages;
    ServingRunRequest request = flags_.request_for(flags_.load, groups, stages, library);
    SharedDevice shared;
    if (flags_.colocation.given()) {
      shared = flags_.colocation.device(colocated, groups);
      request.config.colocation = shared.colocation;
      request.load = flags_.colocation.load(std::move(request.load), colocated);
    }
    request.step_bounds = flags_.has_step_bounds();
    request.more_seeds = flags_.more_seeds;

    ServeWatch watch(flags_, groups, request, metered);
    request.observers = watch.observers(flags_);
    const ServingRun run = run_serving(request);
    ServingReport report = make_report(run, groups, watch.priorities, request.percentiles);
    note_sources(report, groups, library);
    add_kv_transfer(report, groups, library);
    watch.files.add_kernels(groups);
    const std::string remark = watch.files.finish(report);
    Answer answer{.text = serving_text(report) + remark, .json = serving_json(report)};
    watch.files.add_details(answer.json);
    add_notes(answer, groups, run.metrics, notes_on(run, watch.arrivals, request, groups));
    std::optional<EnergyReport> energy;
    if (metered) {
      add_energy(answer, energy.emplace(flags_.energy.report(*watch.meter, groups, run, library)), trials);
    }
    add_parts(answer, groups, request, run, watch);
    if (!flags_.html.empty()) {
      write_serving_page(
          flags_, {.replica = replica, .groups = groups, .watch = watch, .report = report, .energy = std::move(energy)},
          answer, library);
    }
    if (run.metrics.completed == 0 && run.metrics.rejected > 0) {
      answer.failure = nothing_served_text(run.metrics) + length_advice(run.metrics, groups);
      answer.text = wrap_lines(answer.failure + "\n\n", page_width(), 2) + answer.text;
    }
    return answer;
  }

  void add_kv_transfer(ServingReport& report, const std::vector<ReplicaGroup>& groups, const Library& library) const {
    if (!flags_.pools.given()) return;
    const std::optional<KvLink> link =
        kv_link(groups.front(), groups.back(), flags_.pools.transfer(), flags_.replica.placement.spec(), library);
    if (!link) return;
    report.replicas.front().kv_transfer = link->traffic;
    if (!link->note.empty()) report.notes.add_sentence(link->note);
  }

  std::vector<std::string> notes_on(const ServingRun& run, const ArrivalSpan& arrivals,
                                    const ServingRunRequest& request, const std::vector<ReplicaGroup>& groups) const {
    std::vector<std::string> notes;
    const std::string load = flags_.load.open_load();
    if (std::string note = load.empty() ? "" : overload_note(run, arrivals, load); !note.empty())
      notes.push_back(std::move(note));
    if (flags_.intervals && !request.step_bounds) notes.push_back(flags_.interval_note());
    if (std::string note = first_token_note(request.config); request.step_bounds && !note.empty())
      notes.push_back(std::move(note));
    if (run.metrics.shortened > 0) {
      notes.push_back(fmt::format(
          "The outputs of {} of {} are cut to the model's length: prompt and output together have at most "
          "{} tokens ({{max_model_len}}).",
          run.metrics.shortened, counted(run.metrics.completed, "request"), groups.front().memory.flags.max_model_len));
    }
    const bool held_busy = std::any_of(groups.begin(), groups.end(),
                                       [](const ReplicaGroup& group) { return group.sustained_grid != nullptr; });
    if (held_busy) {
      notes.push_back(
          "GPUs are assumed continuously busy ({sustained}): compute-bound steps are slower than on a cool GPU. "
          "{energy}, {power_limit} and {gpu_clock} turn {sustained} on, even at a GPU's default limit.");
    }
    if (flags_.load.offline() && has_front(groups)) {
      notes.push_back(
          "All requests are in the engine's queue at the start, as in an offline run: the HTTP server and the "
          "tokenizer are not simulated. To include them, set {max_concurrency} or {request_rate}.");
    }
    return notes;
  }

  static bool has_front(const std::vector<ReplicaGroup>& groups) {
    return std::any_of(groups.begin(), groups.end(),
                       [](const ReplicaGroup& group) { return group.stack.costs.front.latency.value() > 0; });
  }

  static std::string length_advice(const ServingMetrics& metrics, const std::vector<ReplicaGroup>& groups) {
    if (metrics.rejected_for[static_cast<size_t>(Rejection::beyond_model_length)] == 0) return "";
    const ServingMemory& memory = groups.front().memory;
    return fmt::format(" A request may have {} tokens, prompt and output together ({}): {}, or send shorter prompts.",
                       memory.flags.max_model_len,
                       memory.asked_model_len > 0 ? "the KV cache holds no more" : "{max_model_len}",
                       memory.asked_model_len > 0 ? "use more GPUs" : "raise this limit");
  }

  void add_parts(Answer& answer, const std::vector<ReplicaGroup>& groups, const ServingRunRequest& request,
                 const ServingRun& run, const ServeWatch& watch) const {
    const std::vector<double>& percentiles = request.percentiles;
    add_goals(answer, watch.ttft_goals);
    if (request.config.fleet) add_fleet(answer, *request.config.fleet, run.totals);
    if (flags_.colocation.given()) {
      add_models(answer, flags_.colocation.sharing, groups, run, watch.models.latencies(percentiles), percentiles);
    }
    add_adapters(answer, groups, watch.adapters, run);
    if (!run.totals.stages.empty()) add_stages(answer, run, percentiles);
    if (flags_.load.thinking.given()) add_thinking(answer, watch.thinking.summary(percentiles), percentiles);
    if (flags_.breakdown) add_breakdown(answer, groups, watch.mixes);
    if (flags_.explains()) add_life(answer, groups, watch.life);
    if (flags_.replica.engine.wanted) add_memory(answer, groups);
  }

  // The engine would not start, so that no request is served: the run's keys without a run.
  Answer does_not_fit(const ServingMemory& memory) const {
    const CacheDemand demand{.sequences = memory.flags.max_num_seqs, .tokens_each = memory.flags.max_model_len};
    ServingRun run;
    run.metrics.rejected = flags_.load.requests();
    for (LatencySummary ServingMetrics::*summary :
         {&ServingMetrics::ttft, &ServingMetrics::tpot, &ServingMetrics::itl, &ServingMetrics::e2el}) {
      run.metrics.*summary = latency_summary(LatencyDistribution(), flags_.goals.percentiles());
    }
    const ServingReport report{
        .model = memory.model,
        .replicas = {{.device = memory.device,
                      .scheduler = flags_.replica.scheduler.name(memory.flags.engine),
                      .count = flags_.replica.count,
                      .devices_each = engine_devices(memory.plan)}},
        .label = flags_.results.label,
        .metadata = flags_.results.metadata_pairs(),
        .num_prompts = flags_.load.requests(),
        .request_rate = flags_.load.rate(),
        .burstiness = flags_.load.arrivals.burstiness,
        .max_concurrency = flags_.load.max_concurrency > 0 ? std::optional(flags_.load.max_concurrency) : std::nullopt,
        .percentiles = flags_.goals.percentiles(),
        .percentile_metrics = flags_.goals.shown_metrics(),
        .priorities = {},
        .run = run};
    Answer answer{.text = {}, .json = serving_json(report), .has_results = false};
    const int64_t devices = engine_devices(memory.plan);
    answer.failure =
        fmt::format("Out of memory: {} does not start on {}{}: {}.", memory.model,
                    devices > 1 ? fmt::format("{} x ", devices) : "", memory.device, memory_shortage(memory));
    answer.text = wrap_lines(answer.failure + "\n\n", page_width(), 2) + serving_memory_text(memory, demand);
    answer.json.set("serving_memory", serving_memory_json(memory, demand));
    return answer;
  }

  ServingReport make_report(const ServingRun& run, const std::vector<ReplicaGroup>& groups,
                            const PriorityMetrics& priorities, const std::vector<double>& percentiles) const {
    std::vector<ReplicaSummary> summaries;
    for (const ReplicaGroup& group : groups) {
      summaries.push_back(summary_of(group));
      if (!flags_.colocation.given()) continue;
      summaries.back().model = group.model.name;
      summaries.back().shares_device = summaries.size() > 1;
    }
    if (flags_.pools.given()) {
      summaries.front().pool = "prefill";
      summaries.back().pool = "decode";
    }
    return {
        .model = groups.front().model.served_name(),
        .replicas = std::move(summaries),
        .label = flags_.results.label,
        .metadata = flags_.results.metadata_pairs(),
        .num_prompts = run.metrics.completed + run.metrics.rejected,
        .request_rate = flags_.load.rate(),
        .burstiness = flags_.load.arrivals.burstiness,
        .max_concurrency = flags_.load.max_concurrency > 0 ? std::optional(flags_.load.max_concurrency) : std::nullopt,
        .percentiles = percentiles,
        .percentile_metrics = flags_.goals.shown_metrics(),
        .priorities = priorities.latencies(percentiles),
        .outputs_per_request = flags_.sampling.settings().count,
        .diffusion = flags_.replica.diffusion.diffusion,
        .run = run};
  }

  ServeFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<ServeCommand>();
}

}  // namespace foretoken
