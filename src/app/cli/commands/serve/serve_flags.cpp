#include "app/cli/commands/serve/serve_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/cli/flags/kernel_source_flags.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Step times at both ends of their intervals take as long as the run itself.
constexpr int64_t most_for_intervals = 20'000;

int64_t ranks_of(const std::vector<ReplicaGroup>& groups) {
  int64_t most = 1;
  for (const ReplicaGroup& group : groups) most = std::max(most, group.data_parallel_ranks);
  return most;
}

}  // namespace

void ServeFlags::declare(Options& all) {
  options = &all;
  replica.declare_model(all);
  load.declare(all);
  adapter_load.declare(all);
  sampling.declare(all);
  retrieval.declare(all);
  pictures.declare(all);
  replica.declare_engine(all);
  all.heading("Step times");
  declare_calibration(all);
  declare_deployment(all);
  replica.declare_replicas(all, {.least = 1, .most = 100'000}, [&] {
    all.settings(
        "--replica", replica_kinds,
        "One kind of replica; repeat the flag for each kind. Takes flags of model, engine, scheduler and step times "
        "without dashes, for example device=a100_sxm,tp=2,count=4; other settings come from the command");
  });
  pools.declare(all);
  tiers.declare(all);
  replica.ffn.declare(all);
  energy.declare(all);
  fleet.declare(all);
  colocation.declare(all);
  all.heading("Results");
  goals.declare(all);
  all.flag("--intervals", intervals,
           "Also run with all step times at both ends of their intervals [on up to 20,000 requests; off for "
           "whole traces]");
  all.integer("--num-seeds", more_seeds, {.least = 0, .most = 1000},
              "Also run with this many other random seeds, to widen the intervals by their variation");
  all.flag("--breakdown", breakdown, "Also show which steps and operators the time was spent in");
  all.text("--explain-request", explained,
           "Also explain the latency of one request: queue, prefill, decode, operators. Give its number (0 = the "
           "first), or a percentile of TTFT such as p99");
  results.declare(all);
  all.text("--html", html,
           "Write an HTML report: latencies, results at other rates, the run over time, breakdowns of time, "
           "memory, energy and cost, roofline, and accuracy");
  all.show_first({"--quantization",
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
  all.footer(
      "Requests without tokens, or too large to ever fit, count as failed; the run continues.\nExamples:\n  "
      "foretoken serve --model Llama-3.1-8B --device h100_sxm --request-rate 4 --num-prompts 200\n  foretoken serve "
      "--model Llama-3.1-8B --device h100_sxm --max-concurrency 16 --num-prompts 160 --random-output-len 256\n  "
      "foretoken serve --model Llama-3.1-8B --device h100_sxm --trace azure.csv --replicas 2 --router "
      "least_outstanding\n  foretoken serve --model Llama-3.1-8B --device h100_sxm --request-rate 8 --replica "
      "count=1 --replica device=l40s,count=2 --router join_shortest_queue\n  foretoken serve --model Llama-3.1-8B "
      "--device h100_sxm --request-rate 4 --num-prompts 200 --prefill-pool count=1 --decode-pool count=2,tp=2");
}

void ServeFlags::check_use() const {
  load.check_use(*options);
  load.check_prefixes(*options);
  tiers.check_use(*options);
  fleet.check_use(*options);
  replica.lora.check_use(*options);
  adapter_load.check_use(*options, replica.lora.enabled, !load.trace.empty());
  colocation.check_use(*options);
  pools.check_use(*options);
  sampling.check_use(*options);
  retrieval.check_use(*options, load.conversations());
  pictures.check_use(*options, load.conversations());
}

RunParts ServeFlags::parts(bool metered) const {
  RunParts asked;
  const auto add = [&](bool is_given, RunPart part, const char* flag) {
    if (is_given) asked.add(part, flag);
  };
  add(colocation.given(), RunPart::colocation, "--colocate");
  add(pools.given(), RunPart::separate_pools, "--prefill-pool");
  add(tiers.given(), RunPart::kv_tiers, tiers.tiers.empty() ? "--kv-offloading-size" : "--kv-tier");
  add(replica.lora.enabled, RunPart::adapters, "--enable-lora");
  add(replica.ffn.given(), RunPart::ffn_pool, "--ffn-pool");
  add(sampling.settings().count > 1, RunPart::samples, sampling.outputs > 1 ? "--n" : "--beam-width");
  add(sampling.pools(), RunPart::pooled_requests, "--task");
  add(metered, RunPart::energy, "--energy");
  add(results.details_in_json, RunPart::request_details, "--details-in-json");
  add(results.save_detailed, RunPart::request_details, "--save-detailed");
  add(explains(), RunPart::request_life, "--explain-request");
  fleet.add_parts(asked);
  return asked;
}

std::string ServeFlags::interval_note() const {
  if (more_seeds > 0) {
    return fmt::format(
        "The intervals show the variation between random seeds only. Runs of more than {} requests, and whole traces "
        "with --max-concurrency, are not repeated with step times at both ends of their intervals. --intervals adds "
        "these two runs.",
        most_for_intervals);
  }
  return fmt::format(
      "Runs of more than {} requests, and whole traces with --max-concurrency, are simulated once, without intervals. "
      "--intervals adds them and takes about three times as long.",
      most_for_intervals);
}

bool ServeFlags::has_step_bounds() const {
  return intervals && (options->was_given("--intervals") || has_few_requests());
}

bool ServeFlags::has_few_requests() const {
  if (load.requests() > 0) return load.requests() <= most_for_intervals;
  if (load.max_concurrency > 0) return false;
  // A whole trace says how many it has once it is read.
  const std::unique_ptr<RequestSource> source = load.load()(0);
  int64_t count = 0;
  for (; count <= most_for_intervals && source->next_arrival(); ++count) source->next();
  return count <= most_for_intervals;
}

std::vector<ReplicaGroup> ServeFlags::groups_for_load(const Library& library, const ReplicaFlags& replicas,
                                                      const std::vector<ColocatedEngineFlags>& colocated) const {
  std::vector<ReplicaGroup> built = groups(library, replicas, colocated);
  if (built.front().model.is_encoder_only() && !sampling.pools()) {
    throw InputError({.source = "--model",
                      .value = built.front().model.name,
                      .expected = "--task embed or --task score, because an encoder generates no tokens"});
  }
  if (sampling.pools()) {
    for (ReplicaGroup& group : built) group.logits = Logits::none;
  }
  pictures.add_to_engines(built, library);
  return built;
}

std::vector<ReplicaGroup> ServeFlags::groups(const Library& library, const ReplicaFlags& replicas,
                                             const std::vector<ColocatedEngineFlags>& colocated) const {
  std::vector<ReplicaGroup> built;
  for (const ColocatedEngineFlags& engine : colocated) {
    built.push_back(engine.replica.build(library, load.offline(), load.prompt_texts()));
  }
  for (const std::string& settings : replica_kinds) {
    built.push_back(replicas.with("--replica", settings).build(library, load.offline(), load.prompt_texts()));
  }
  if (pools.given()) {
    if (!built.empty()) {
      throw InputError({.source = "--replica",
                        .value = "with --prefill-pool",
                        .expected = "either --replica or the two pools, not both"});
    }
    ReplicaFlags prefill = replicas.with("--prefill-pool", pools.prefill);
    prefill.speculation = {};  // only decodes verify drafts
    prefill.ffn = {};          // nor do prompts gain from micro-batches that go to and fro
    built.push_back(prefill.build(library, load.offline(), load.prompt_texts()));
    built.push_back(replicas.with("--decode-pool", pools.decode).build(library, load.offline(), load.prompt_texts()));
  }
  if (!built.empty() && replicas.count > 1) {
    throw InputError({.source = "--replicas",
                      .value = "together with --replica or the pools",
                      .expected = "count=N in each --replica, --prefill-pool or --decode-pool"});
  }
  if (built.empty()) built.push_back(replicas.build(library, load.offline(), load.prompt_texts()));
  return built;
}

ServingRunRequest ServeFlags::request_for(const LoadFlags& requests, std::vector<ReplicaGroup>& groups,
                                          StageList& stages, const Library& library) const {
  ServingRunRequest request;
  request.config.router = replica.router_name(ranks_of(groups));
  request.config.seed = static_cast<uint64_t>(load.seed);
  if (fleet.given()) request.config.fleet = fleet.fleet(groups, pools.given());
  if (pools.given()) {
    request.config.disaggregation = pools.disaggregation(groups.front(), groups.back(), replica.engine.engine.engine,
                                                         replica.placement.spec(), library);
  }
  if (tiers.given()) request.config.kv_tiers = tiers.settings(groups, pools.given(), library);
  for (const ReplicaGroup& group : groups) {
    request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(group.count), group.config);
  }
  request.load = sampling.changed(
      pictures.changed(retrieval.changed(adapter_load.load(fleet.from_regions(requests.load()))), library));
  retrieval.add_stages(stages, replica.model.device, library);
  pictures.add_stage(stages, replica.model.device, library);
  request.config.stages = stages.configs();
  request.config.samples = sampling.settings();
  request.goals = goals.goals();
  request.percentiles = goals.percentiles();
  return request;
}

}  // namespace foretoken
