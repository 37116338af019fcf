#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/colocation_flags.h"
#include "app/cli/flags/energy_flags.h"
#include "app/cli/flags/fleet_flags.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/kv_tier_flags.h"
#include "app/cli/flags/load_flags.h"
#include "app/cli/flags/picture_flags.h"
#include "app/cli/flags/pool_flags.h"
#include "app/cli/flags/replica_flags.h"
#include "app/cli/flags/result_flags.h"
#include "app/cli/flags/retrieval_flags.h"
#include "app/cli/flags/sampling_flags.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/page_trust.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/text.h"
#include "report/page/serving_page.h"
#include "report/parts/energy_report.h"
#include "report/parts/table.h"
#include "report/plan/goal_report.h"
#include "report/serving/colocation_report.h"
#include "report/serving/fleet_report.h"
#include "report/serving/lora_report.h"
#include "report/serving/request_life_report.h"
#include "report/serving/request_shapes_report.h"
#include "report/serving/serving_breakdown.h"
#include "report/training/memory_report.h"
#include "serving/engine/engine_setup.h"
#include "serving/results/goal_counts.h"
#include "serving/results/priority_metrics.h"
#include "serving/results/request_life.h"
#include "serving/results/thinking_metrics.h"
#include "serving/results/ttft_ranking.h"
#include "serving/scheduling/router.h"

namespace foretoken {
namespace {

class ShownProgress : public RunObserver {
 public:
  void request_ended(const RequestRecord& /*record*/) override {
    if (++ended_ % each_ == 0) show_progress(fmt::format("{} requests served", ended_));
  }
  void step_ran(const StepRecord& /*record*/) override { check_still_wanted(); }

 private:
  int64_t each_ = has_progress_listener() ? 100 : 100'000;  // a terminal shows a line for each
  int64_t ended_ = 0;
};

class ServeCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    replica_.declare_model(options);
    load_.declare(options);
    adapter_load_.declare(options);
    sampling_.declare(options);
    retrieval_.declare(options);
    pictures_.declare(options);
    replica_.declare_engine(options);
    options.heading("Step times");
    declare_calibration(options);
    declare_deployment(options);
    replica_.declare_replicas(options, {.least = 1, .most = 100'000}, [&] {
      options.settings(
          "--replica", replica_kinds_,
          "One kind of replica; repeat the flag for each kind. Takes flags of model, engine, scheduler and step times "
          "without dashes, for example device=a100_sxm,tp=2,count=4; other settings come from the command");
    });
    pools_.declare(options);
    tiers_.declare(options);
    replica_.ffn.declare(options);
    energy_.declare(options);
    fleet_.declare(options);
    colocation_.declare(options);
    options.heading("Results");
    goals_.declare(options);
    options.flag("--intervals", intervals_,
                 "Also run with all step times at both ends of their intervals [on up to 20,000 requests; off for "
                 "whole traces]");
    options.integer("--num-seeds", more_seeds_, {.least = 0, .most = 1000},
                    "Also run with this many other random seeds, to widen the intervals by their variation");
    options.flag("--breakdown", breakdown_, "Also show which steps and operators the time was spent in");
    options.text("--explain-request", explained_,
                 "Also explain the latency of one request: queue, prefill, decode, operators. Give its number (0 = the "
                 "first), or a percentile of TTFT such as p99");
    results_.declare(options);
    options.text("--html", html_,
                 "Write an HTML report: latencies, results at other rates, the run over time, breakdowns of time, "
                 "memory, energy and cost, roofline, and accuracy");
    options.show_first({"--quantization",
                        "--kv-cache-dtype",
                        "--tensor-parallel-size",
                        "--pipeline-parallel-size",
                        "--data-parallel-size",
                        "--enable-expert-parallel",
                        "--cluster",
                        "--trace",
                        "--request-rate",
                        "--max-concurrency",
                        "--num-prompts",
                        "--dataset-name",
                        "--random-input-len",
                        "--random-output-len",
                        "--engine",
                        "--max-model-len",
                        "--max-num-seqs",
                        "--speculative-config",
                        "--deployment",
                        "--replicas",
                        "--prefill-pool",
                        "--goodput",
                        "--energy",
                        "--breakdown",
                        "--html"});
    options.footer(
        "Requests without tokens, or too large to ever fit, count as failed; the run continues.\nExamples:\n  "
        "foretoken serve --model Llama-3.1-8B --device h100_sxm --request-rate 4 --num-prompts 200\n  foretoken serve "
        "--model Llama-3.1-8B --device h100_sxm --max-concurrency 16 --num-prompts 160 --random-output-len 256\n  "
        "foretoken serve --model Llama-3.1-8B --device h100_sxm --trace azure.csv --replicas 2 --router "
        "least_outstanding\n  foretoken serve --model Llama-3.1-8B --device h100_sxm --request-rate 8 --replica "
        "count=1 --replica device=l40s,count=2 --router join_shortest_queue\n  foretoken serve --model Llama-3.1-8B "
        "--device h100_sxm --request-rate 4 --num-prompts 200 --prefill-pool count=1 --decode-pool count=2,tp=2");
  }

  Answer run(const Library& library) const override {
    try {
      return answer(library);
    } catch (const EngineDoesNotFit& error) {
      return does_not_fit(error.memory());
    }
  }

 private:
  static constexpr int64_t most_for_intervals = 20'000;

  Answer answer(const Library& library) const {
    load_.check_use(*options_);
    tiers_.check_use(*options_);
    fleet_.check_use(*options_);
    replica_.lora.check_use(*options_);
    adapter_load_.check_use(*options_, replica_.lora.enabled, !load_.trace.empty());
    colocation_.check_use(*options_);
    sampling_.check_use(*options_);
    retrieval_.check_use(*options_, load_.conversations());
    pictures_.check_use(*options_, load_.conversations());
    const bool metered = energy_.wanted(*options_);
    parts(metered).check();
    ReplicaFlags replica = replica_;
    replica.metered = metered;
    std::vector<ClockTrial> trials;
    if (replica.power.searches_clock()) {
      trials = try_clocks(library, replica);
      replica.power.clock = number_text(trials[best_clock(trials)].mhz);
    }
    const std::vector<ColocatedEngineFlags> colocated = colocation_.read(replica, library.hardware());
    std::vector<ReplicaGroup> groups = groups_for_load(library, replica, colocated);
    std::vector<std::string> schedulers;
    for (const ReplicaGroup& group : groups) {
      const bool known = std::find(schedulers.begin(), schedulers.end(), group.config.scheduler) != schedulers.end();
      if (!known) schedulers.push_back(group.config.scheduler);
    }
    refuse_unread_scheduler_flags(*options_, schedulers);
    StageList stages;
    ServingRunRequest request = request_for(load_, groups, stages, library);
    SharedDevice shared;
    if (colocation_.given()) {
      shared = colocation_.device(colocated, groups);
      request.config.colocation = shared.colocation;
      request.load = colocation_.load(std::move(request.load), colocated);
    }
    const bool few = load_.requests() > 0 && load_.requests() <= most_for_intervals;
    request.step_bounds = intervals_ && (few || options_->was_given("--intervals"));
    request.more_seeds = more_seeds_;

    ShownProgress progress;
    ResultFiles files(results_);
    PriorityMetrics priorities, models(groups.size(), &RequestRecord::replica);
    LoraCounts adapters;
    RequestLife life(explained_request(request));
    ThinkingMetrics thinking;
    request.observers = files.observers();
    request.observers.push_back(&progress);
    request.observers.push_back(&priorities);
    GoalCounts ttft_goals(groups.front().config.options.ttft_goals);
    request.observers.push_back(&ttft_goals);
    if (colocation_.given()) request.observers.push_back(&models);
    if (replica_.lora.enabled) request.observers.push_back(&adapters);
    if (explains()) request.observers.push_back(&life);
    if (load_.thinking.given()) request.observers.push_back(&thinking);
    std::vector<StepMix> mixes;
    int32_t first = 0;
    for (const ReplicaGroup& group : groups) {
      const auto end = first + static_cast<int32_t>(group.count);
      mixes.emplace_back(first, end);
      first = end;
    }
    if (breakdown_ || !html_.empty()) {
      for (StepMix& mix : mixes) request.observers.push_back(&mix);
    }
    LatencyCurves curves;
    if (!html_.empty()) request.observers.push_back(&curves);

    std::optional<EnergyMeter> meter;
    if (metered) request.observers.push_back(&meter.emplace(energy_meter(groups)));

    const ServingRun run = run_serving(request);
    ServingReport report = make_report(run, groups, priorities, request.percentiles);
    for (const ReplicaGroup& group : groups) {
      if (group.has_own_kernels) report.notes.add_kernels(group.models.kernels);
      report.notes.add_engine(group.memory.flags.engine, group.models.kernels.device());
      report.notes.add_deployment(library.deployment().get(), group.memory.flags.engine, group.models.kernels.device(),
                                  group.model, group.plan);
      if (group.models.collectives) report.notes.add_network(*group.models.collectives);
    }
    files.add_kernels(groups);
    const std::string remark = files.finish(report);
    Answer answer{.text = serving_text(report) + remark, .json = serving_json(report)};
    files.add_details(answer.json);
    add_notes(answer, groups);
    std::optional<EnergyReport> energy;
    if (metered) add_energy(answer, energy.emplace(energy_.report(*meter, groups, run, library)), trials);
    if (!ttft_goals.counts().empty()) {
      answer.text += "\n" + goals_text(ttft_goals.counts());
      answer.json.set("ttft_goals", goals_json(ttft_goals.counts()));
    }
    if (request.config.fleet) add_fleet(answer, *request.config.fleet, run.totals);
    if (colocation_.given())
      add_models(answer, groups, run, models.latencies(request.percentiles), request.percentiles);
    for (const ReplicaGroup& group : groups) {
      if (!group.lora) continue;
      add_adapters(answer, group, adapters, run);
      break;
    }
    if (!run.totals.stages.empty()) add_stages(answer, run, request.percentiles);
    if (load_.thinking.given()) add_thinking(answer, thinking.summary(request.percentiles), request.percentiles);
    if (breakdown_) add_breakdown(answer, groups, mixes);
    if (explains()) add_life(answer, groups, life);
    if (replica_.engine.wanted) add_memory(answer, groups);
    if (!html_.empty()) {
      ServingPage page{.report = report,
                       .curves = curves,
                       .device = groups.front().models.kernels.device(),
                       .goals = goals_.goals(),
                       .rates = other_rates(groups, run.metrics, library),
                       .steps = steps_with_operators(groups, mixes),
                       .memory = std::nullopt,
                       .energy = std::move(energy),
                       .energy_remark = {},
                       .rent = std::nullopt,
                       .trust = trust_in(groups, library),
                       .command = options_->line(),
                       .more = answer.text};
      page.trust.time = time_by_confidence(page.steps);
      if (!groups.front().model.is_encoder_only()) page.memory = groups.front().memory;
      if (!page.energy) add_energy(page, library, replica, groups);
      write_report(html_, serving_page_html(page));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    if (run.metrics.completed == 0 && run.metrics.rejected > 0) {
      answer.failure = nothing_served_text(run.metrics);
      answer.text = wrap_lines(answer.failure + "\n\n", page_width, 2) + answer.text;
    }
    return answer;
  }

  // The engine would not start, so that no request is served: the run's keys without a run.
  Answer does_not_fit(const ServingMemory& memory) const {
    const CacheDemand demand{.sequences = memory.flags.max_num_seqs, .tokens_each = memory.flags.max_model_len};
    ServingRun run;
    run.metrics.rejected = load_.requests();
    for (LatencySummary ServingMetrics::*summary :
         {&ServingMetrics::ttft, &ServingMetrics::tpot, &ServingMetrics::itl, &ServingMetrics::e2el}) {
      run.metrics.*summary = latency_summary(LatencyDistribution(), goals_.percentiles());
    }
    const ServingReport report{
        .model = memory.model,
        .replicas = {{.device = memory.device,
                      .scheduler = replica_.scheduler.name(memory.flags.engine),
                      .count = replica_.count,
                      .devices_each = engine_devices(memory.plan)}},
        .label = results_.label,
        .metadata = results_.metadata_pairs(),
        .num_prompts = load_.requests(),
        .request_rate = load_.rate(),
        .burstiness = load_.arrivals.burstiness,
        .max_concurrency = load_.max_concurrency > 0 ? std::optional(load_.max_concurrency) : std::nullopt,
        .percentiles = goals_.percentiles(),
        .percentile_metrics = goals_.shown_metrics(),
        .priorities = {},
        .run = run};
    Answer answer{.text = {}, .json = serving_json(report), .has_results = false};
    const int64_t devices = engine_devices(memory.plan);
    answer.failure =
        fmt::format("Out of memory: {} does not start on {}{}: {}.", memory.model,
                    devices > 1 ? fmt::format("{} x ", devices) : "", memory.device, memory_shortage(memory));
    answer.text = wrap_lines(answer.failure + "\n\n", page_width, 2) + serving_memory_text(memory, demand);
    answer.json.set("serving_memory", serving_memory_json(memory, demand));
    return answer;
  }

  // What the flags ask for, by the flags that do.
  RunParts parts(bool metered) const {
    RunParts parts;
    const auto add = [&](bool is_given, RunPart part, const char* flag) {
      if (is_given) parts.add(part, flag);
    };
    add(colocation_.given(), RunPart::colocation, "--colocate");
    add(pools_.given(), RunPart::separate_pools, "--prefill-pool");
    add(tiers_.given(), RunPart::kv_tiers, tiers_.tiers.empty() ? "--kv-offloading-size" : "--kv-tier");
    add(replica_.lora.enabled, RunPart::adapters, "--enable-lora");
    add(replica_.ffn.given(), RunPart::ffn_pool, "--ffn-pool");
    add(sampling_.settings().count > 1, RunPart::samples, sampling_.outputs > 1 ? "--n" : "--beam-width");
    add(sampling_.pools(), RunPart::pooled_requests, "--task");
    add(metered, RunPart::energy, "--energy");
    add(results_.details_in_json, RunPart::request_details, "--details-in-json");
    add(results_.save_detailed, RunPart::request_details, "--save-detailed");
    add(explains(), RunPart::request_life, "--explain-request");
    fleet_.add_parts(parts);
    return parts;
  }

  // The run itself, watched by nobody yet. It uses groups and stages.
  ServingRunRequest request_for(const LoadFlags& load, std::vector<ReplicaGroup>& groups, StageList& stages,
                                const Library& library) const {
    ServingRunRequest request;
    request.config.router = replica_.router_name(ranks_of(groups));
    request.config.seed = static_cast<uint64_t>(load_.seed);
    if (fleet_.given()) request.config.fleet = fleet_.fleet(groups, pools_.given());
    if (pools_.given()) {
      request.config.disaggregation = pools_.disaggregation(
          groups.front(), groups.back(), replica_.engine.engine.engine, replica_.placement.spec(), library);
    }
    if (tiers_.given()) request.config.kv_tiers = tiers_.settings(groups, pools_.given(), library);
    for (const ReplicaGroup& group : groups) {
      request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(group.count), group.config);
    }
    request.load = sampling_.changed(
        pictures_.changed(retrieval_.changed(adapter_load_.load(fleet_.from_regions(load.load()))), library));
    retrieval_.add_stages(stages, replica_.model.device, library);
    pictures_.add_stage(stages, replica_.model.device, library);
    request.config.stages = stages.configs();
    request.config.samples = sampling_.settings();
    request.goals = goals_.goals();
    request.percentiles = goals_.percentiles();
    return request;
  }

  // The same engines under more and less of the same load; nothing where it has no rate.
  std::vector<RatePoint> other_rates(std::vector<ReplicaGroup>& groups, const ServingMetrics& own,
                                     const Library& library) const {
    if (!std::isfinite(load_.rate()) || !load_.trace.empty() || fleet_.given() || colocation_.given()) return {};
    std::vector<RatePoint> points;
    for (const double factor : {0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0}) {
      const double rate = factor * load_.rate();
      if (factor == 1) {
        points.push_back({rate, own});
        continue;
      }
      show_progress(fmt::format("{:.3g} requests/s", rate));
      LoadFlags load = load_;
      load.request_rate = number_text(rate);
      StageList stages;
      ServingRunRequest request = request_for(load, groups, stages, library);
      request.step_bounds = false;
      points.push_back({rate, run_serving(request).metrics});
    }
    return points;
  }

  // The energy that a page shows although --energy was not asked for. Boards that are held busy have slower steps, so
  // that it is of a run of its own.
  void add_energy(ServingPage& page, const Library& library, ReplicaFlags replica,
                  const std::vector<ReplicaGroup>& groups) const {
    const bool is_known = std::all_of(groups.begin(), groups.end(), [&](const ReplicaGroup& group) {
      return library.power_model(group.models.kernels.device()).has_value();
    });
    if (!is_known || !parts(false).accepts(RunPart::energy)) {
      page.energy_remark = is_known ? "Energy is not reported for this kind of run."
                                    : "The power of these devices is not known, so their energy is not reported.";
      page.rent = rent_of(page, library);
      return;
    }
    show_progress("energy");
    replica.metered = true;
    std::vector<ReplicaGroup> metered = groups_for_load(library, replica, {});
    StageList stages;
    ServingRunRequest request = request_for(load_, metered, stages, library);
    request.step_bounds = page.report.run.has_intervals();
    EnergyMeter meter = energy_meter(metered);
    request.observers.push_back(&meter);
    const ServingRun run = run_serving(request);
    page.energy = energy_.report(meter, metered, run, library);
    page.energy_remark = fmt::format(
        "GPUs are assumed continuously busy, as with --energy: at their power limit, steps are slower than on a cool "
        "GPU. The run takes {:.4g} s instead of {:.4g} s.",
        run.metrics.duration_s, page.report.run.metrics.duration_s);
  }

  // Nothing where there are several kinds of devices, or nobody is known to lend them.
  static std::optional<RentedWork> rent_of(const ServingPage& page, const Library& library) {
    const std::vector<ReplicaSummary>& replicas = page.report.replicas;
    const bool is_one_kind = std::all_of(replicas.begin(), replicas.end(), [&](const ReplicaSummary& replica) {
      return replica.device == page.device.name;
    });
    const MaybeFact<double> rent = library.rent_usd_per_hour(page.device);
    if (!rent || !is_one_kind) return std::nullopt;
    return RentedWork{.device = page.device.title,
                      .devices = page.report.devices(),
                      .usd_per_device_hour = rent->value,
                      .price_source = rent->source,
                      .tokens_per_second = page.report.run.metrics.output_throughput,
                      .tokens = "output tokens"};
  }

  static Trust trust_in(const std::vector<ReplicaGroup>& groups, const Library& library) {
    std::vector<Device> devices;
    bool has_collectives = false;
    for (const ReplicaGroup& group : groups) {
      devices.push_back(group.models.kernels.device());
      has_collectives = has_collectives || engine_devices(group.plan) > 1;
    }
    std::vector<std::string_view> layers = {"kernels", "steps", "serving"};
    if (has_collectives) layers.insert(layers.begin() + 1, "collectives");
    Trust trust = page_trust(library, std::move(layers), devices);
    trust.time_of = "the kernel time of typical steps";
    return trust;
  }

  static std::vector<TypicalStep> steps_with_operators(const std::vector<ReplicaGroup>& groups,
                                                       const std::vector<StepMix>& mixes) {
    std::vector<TypicalStep> steps;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!groups[i].has_operators) continue;
      for (TypicalStep& step : typical_steps_of(groups[i], mixes[i], "--html")) steps.push_back(std::move(step));
    }
    return steps;
  }

  std::vector<ClockTrial> try_clocks(const Library& library, ReplicaFlags replica) const {
    if (!goals_.goals().any()) {
      throw InputError({.source = "--gpu-clock",
                        .value = "auto",
                        .expected = "--goodput with the latencies that requests must meet"});
    }
    const Device device = library.hardware().device(replica.model.device);
    std::vector<ClockTrial> trials;
    for (const double mhz : clocks_to_try(PowerFlags::top_mhz(device))) {
      show_progress(fmt::format("clock of {:.0f} MHz", mhz));
      replica.power.clock = number_text(mhz);
      std::vector<ReplicaGroup> groups = build_groups(library, replica);
      StageList stages;
      ServingRunRequest request = request_for(load_, groups, stages, library);
      request.step_bounds = false;
      EnergyMeter meter = energy_meter(groups);
      request.observers.push_back(&meter);
      const ServingRun run = run_serving(request);
      trials.push_back({mhz, run.metrics, energy_.report(meter, groups, run, library).account});
    }
    return trials;
  }

  // The engines as this load uses them.
  std::vector<ReplicaGroup> groups_for_load(const Library& library, const ReplicaFlags& replica,
                                            const std::vector<ColocatedEngineFlags>& colocated) const {
    std::vector<ReplicaGroup> groups = build_groups(library, replica, colocated);
    if (groups.front().model.is_encoder_only() && !sampling_.pools()) {
      throw InputError({.source = "--model",
                        .value = groups.front().model.name,
                        .expected = "--task embed or --task score, because an encoder generates no tokens"});
    }
    if (sampling_.pools()) {
      for (ReplicaGroup& group : groups) group.logits = Logits::none;
    }
    pictures_.add_to_engines(groups, library);
    return groups;
  }

  std::vector<ReplicaGroup> build_groups(const Library& library, const ReplicaFlags& replica,
                                         const std::vector<ColocatedEngineFlags>& colocated = {}) const {
    std::vector<ReplicaGroup> groups;
    for (const ColocatedEngineFlags& engine : colocated) {
      groups.push_back(engine.replica.build(library, load_.offline()));
    }
    for (const std::string& settings : replica_kinds_) {
      groups.push_back(replica.with("--replica", settings).build(library, load_.offline()));
    }
    if (pools_.given()) {
      if (!groups.empty()) {
        throw InputError({.source = "--replica",
                          .value = "with --prefill-pool",
                          .expected = "either --replica or the two pools, not both"});
      }
      ReplicaFlags prefill = replica.with("--prefill-pool", pools_.prefill);
      prefill.speculation = {};  // only decodes verify drafts
      prefill.ffn = {};          // nor do prompts gain from micro-batches that go to and fro
      groups.push_back(prefill.build(library, load_.offline()));
      groups.push_back(replica.with("--decode-pool", pools_.decode).build(library, load_.offline()));
    }
    if (!groups.empty() && replica.count > 1) {
      throw InputError({.source = "--replicas",
                        .value = "together with --replica or the pools",
                        .expected = "count=N in each --replica, --prefill-pool or --decode-pool"});
    }
    if (groups.empty()) groups.push_back(replica.build(library, load_.offline()));
    return groups;
  }

  static int64_t ranks_of(const std::vector<ReplicaGroup>& groups) {
    int64_t most = 1;
    for (const ReplicaGroup& group : groups) most = std::max(most, group.data_parallel_ranks);
    return most;
  }

  ServingReport make_report(const ServingRun& run, const std::vector<ReplicaGroup>& groups,
                            const PriorityMetrics& priorities, const std::vector<double>& percentiles) const {
    std::vector<ReplicaSummary> summaries;
    for (const ReplicaGroup& group : groups) {
      summaries.push_back(summary_of(group));
      if (!colocation_.given()) continue;
      summaries.back().model = group.model.name;
      summaries.back().shares_device = summaries.size() > 1;
    }
    return {.model = groups.front().model.served_name(),
            .replicas = std::move(summaries),
            .label = results_.label,
            .metadata = results_.metadata_pairs(),
            .num_prompts = run.metrics.completed + run.metrics.rejected,
            .request_rate = load_.rate(),
            .burstiness = load_.arrivals.burstiness,
            .max_concurrency = load_.max_concurrency > 0 ? std::optional(load_.max_concurrency) : std::nullopt,
            .percentiles = percentiles,
            .percentile_metrics = goals_.shown_metrics(),
            .priorities = priorities.latencies(percentiles),
            .outputs_per_request = sampling_.settings().count,
            .diffusion = replica_.diffusion.diffusion,
            .run = run};
  }

  // What a reader should know of the models: assumed formats, parts that are not modelled, an acceptance that is not
  // known.
  static void add_notes(Answer& answer, const std::vector<ReplicaGroup>& groups) {
    std::vector<std::string> notes;
    for (const ReplicaGroup& group : groups) {
      for (const std::string& note : group.model.notes) {
        if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
      }
      if (!group.drafter || group.drafter->speculation().unknown_acceptance.empty()) continue;
      const Speculation& drafts = group.drafter->speculation();
      notes.push_back(fmt::format(
          "no draft acceptance was given: {:.2f} tokens per verification step are assumed (90% interval {:.2f} to "
          "{:.2f}), the mean of published runs; to change it, set synthetic_acceptance_length in "
          "{{speculative_config}}",
          drafts.acceptance.expected_tokens(drafts.draft_tokens),
          drafts.unknown_acceptance[0].expected_tokens(drafts.draft_tokens),
          drafts.unknown_acceptance[1].expected_tokens(drafts.draft_tokens)));
    }
    if (notes.empty()) return;
    Json list = Json::array();
    for (const std::string& note : notes) {
      answer.text += wrap_lines("note: " + note + "\n", page_width, 2);
      list.push(note);
    }
    answer.json.set("notes", std::move(list));
  }

  static void add_energy(Answer& answer, const EnergyReport& report, const std::vector<ClockTrial>& trials) {
    answer.text += "\n" + energy_text(report);
    answer.json.set("energy", energy_json(report));
    if (trials.empty()) return;
    answer.text += "\n" + clock_search_text(trials);
    answer.json.set("clock_search", clock_search_json(trials));
  }

  static void add_fleet(Answer& answer, const FleetConfig& config, const SimulationTotals& totals) {
    const FleetReport report{.config = config, .totals = totals.fleet, .end_s = to_seconds(totals.end).value()};
    answer.text += "\n" + fleet_text(report);
    answer.json.set("fleet", fleet_json(report));
  }

  void add_models(Answer& answer, const std::vector<ReplicaGroup>& groups, const ServingRun& run,
                  const std::vector<PriorityLatencies>& latencies, const std::vector<double>& percentiles) const {
    ColocationReport report{.sharing = sharing_from_name(colocation_.sharing),
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

  static void add_adapters(Answer& answer, const ReplicaGroup& group, const LoraCounts& counts, const ServingRun& run) {
    const LoraReport report{.settings = group.lora->settings(),
                            .slot_bytes = group.lora->slot_bytes(),
                            .adapter_bytes = group.lora->adapter_bytes(),
                            .loading = group.lora->loading(),
                            .counts = counts,
                            .duration_s = run.metrics.duration_s};
    answer.text += "\n" + lora_text(report);
    answer.json.set("lora", lora_json(report));
  }

  static void add_stages(Answer& answer, const ServingRun& run, const std::vector<double>& percentiles) {
    answer.text += "\n" + stages_text(run.totals.stages, run.metrics.duration_s, percentiles);
    answer.json.set("stages", stages_json(run.totals.stages, run.metrics.duration_s, percentiles));
  }

  static void add_thinking(Answer& answer, const ThinkingSummary& thinking, const std::vector<double>& percentiles) {
    answer.text += "\n" + thinking_text(thinking, percentiles);
    answer.json.set("thinking", thinking_json(thinking, percentiles));
  }

  static void add_breakdown(Answer& answer, const std::vector<ReplicaGroup>& groups,
                            const std::vector<StepMix>& mixes) {
    std::vector<OperatorAccount> pools;
    for (size_t i = 0; i < groups.size(); ++i) {
      pools.push_back(operator_account_of(groups[i], mixes[i], "--breakdown"));
    }
    answer.text += "\n" + serving_breakdown_text(pools, "Where the time went (all replicas, all steps)");
    answer.json.set("breakdown", serving_breakdown_json(pools));
  }

  bool explains() const { return !explained_.empty() && explained_ != "-1"; }

  // The number of the request to explain; one at a percentile is found by a run of its own.
  int64_t explained_request(const ServingRunRequest& request) const {
    if (!explains()) return -1;
    constexpr double most_percentile = 100;
    const bool is_percentile = lower_case(explained_.front()) == 'p';
    const std::optional<double> number = parse_number(explained_.substr(is_percentile ? 1 : 0));
    const std::optional<int64_t> whole = number ? exact_integer(*number) : std::nullopt;
    const bool makes_sense = number && *number >= 0 && (is_percentile ? *number <= most_percentile : whole.has_value());
    if (!makes_sense) {
      throw InputError({.source = "--explain-request",
                        .value = printable(explained_),
                        .expected = "the number of a request, counting from 0, or a percentile of TTFT such as p99"});
    }
    if (!is_percentile) return *whole;
    TtftRanking ranking;
    ServingRunRequest first = request;
    first.step_bounds = false;
    first.more_seeds = 0;
    first.observers = {&ranking};
    run_serving(first);
    return ranking.request_at(*number).value_or(0);
  }

  static void add_life(Answer& answer, const std::vector<ReplicaGroup>& groups, const RequestLife& life) {
    if (!life.has_ended()) {
      throw InputError({.source = "--explain-request",
                        .value = fmt::format("{}", life.request()),
                        .expected = "a request of this run, counting from 0"});
    }
    size_t of = 0;
    for (int64_t before = life.record().replica; before >= groups[of].count; ++of) before -= groups[of].count;
    std::optional<OperatorAccount> steps;
    if (groups[of].has_operators) steps = operator_account_of(groups[of], life.steps(), "--explain-request");
    const OperatorAccount* known = steps ? &*steps : nullptr;
    answer.text += "\n" + request_life_text(life, known);
    answer.json.set("request", request_life_json(life, known));
  }

  static void add_memory(Answer& answer, const std::vector<ReplicaGroup>& groups) {
    Json all = Json::array();
    for (const ReplicaGroup& group : groups) {
      const CacheDemand demand{.sequences = group.config.options.max_num_seqs,
                               .tokens_each = group.memory.flags.max_model_len};
      answer.text += "\n" + serving_memory_text(group.memory, demand);
      all.push(serving_memory_json(group.memory, demand));
    }
    answer.json.set("serving_memory", groups.size() == 1 ? all.items().front() : all);
  }

  const Options* options_ = nullptr;
  ReplicaFlags replica_;
  PoolFlags pools_;
  KvTierFlags tiers_;
  EnergyFlags energy_;
  FleetFlags fleet_;
  ColocationFlags colocation_;
  std::vector<std::string> replica_kinds_;
  LoadFlags load_;
  AdapterLoadFlags adapter_load_;
  SamplingFlags sampling_;
  RetrievalFlags retrieval_;
  PictureFlags pictures_;
  GoalFlags goals_;
  ResultFlags results_;
  std::string html_;
  std::string explained_;
  int64_t more_seeds_ = 0;
  bool intervals_ = true, breakdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<ServeCommand>();
}

}  // namespace foretoken
