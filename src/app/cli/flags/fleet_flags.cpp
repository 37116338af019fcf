#include "app/cli/flags/fleet_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr const char* scaling_heading = "Autoscaling";
constexpr const char* cold_start_heading = "Cold starts";
constexpr const char* admission_heading = "Admission";
constexpr const char* regions_heading = "Regions";
constexpr Range<double> seconds_of_time{.least = 0, .most = 7e6};
constexpr Range<int64_t> replica_counts{.least = 1, .most = 100'000};
constexpr double usual_outstanding = 32, usual_kv_use = 0.7;  // targets of the reactive autoscaler

std::string autoscaler_summaries() {
  std::string text;
  for (const AutoscalerKind& kind : autoscaler_kinds()) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : "; ", kind.name, kind.summary);
  }
  return text;
}

}  // namespace

void FleetFlags::declare(Options& options) {
  options.heading(scaling_heading);
  options.choice("--autoscaler", scaling.kind, autoscaler_names(),
                 "How the number of replicas is chosen: " + autoscaler_summaries());
  options.integer("--min-replicas", scaling.least, replica_counts, "Minimum number of replicas (per region)");
  options.integer("--max-replicas", max_replicas, {.least = 0, .most = 100'000},
                  "Maximum number of replicas (per region); 0 = the number at the start");
  options.number("--scale-interval", scaling.interval_s, {.least = 0.001, .most = 1e6},
                 "Time between two decisions of the autoscaler, in seconds");
  options.choice("--scale-metric", scale_metric, {"outstanding", "kv_use"},
                 "With --autoscaler reactive: metric kept at its target. outstanding = unfinished requests per "
                 "replica; kv_use = share of the KV cache in use");
  options.number("--scale-target", scale_target, {.least = 0, .most = 1e9},
                 "With --autoscaler reactive: target per replica; 0 = 32 requests, or 0.7 of the KV cache");
  options.number("--scale-tolerance", scaling.tolerance, {.least = 0, .most = 10},
                 "With --autoscaler reactive: deviation from the target that is ignored, as a share of the target");
  options.number("--scale-down-window", scaling.stabilization_s, seconds_of_time,
                 "Scale down only if demand stayed below capacity for this long, in seconds");
  options.number("--scale-utilization", scaling.utilization, {.least = 0.01, .most = 1},
                 "With --autoscaler predictive, seasonal or planner: share of each replica's capacity to plan for");
  options.number("--scale-tpot", scale_tpot_ms, {.least = 0, .most = 1e6},
                 "With --autoscaler predictive, seasonal or planner: TPOT that the capacity must meet, in "
                 "milliseconds; 0 = no limit");
  options.number("--replica-rate", replica_rate, {.least = 0, .most = 1e9},
                 "With --autoscaler predictive, seasonal or planner: capacity of one replica in requests/s; 0 = "
                 "predicted from step times");
  options.number("--scale-period", scaling.period_s, {.least = 1, .most = 7e6},
                 "With --autoscaler seasonal: period of the load in seconds");

  options.heading(cold_start_heading);
  options.number("--cold-start", cold_start_s, {.least = -1, .most = 1e6},
                 "Time until a new replica serves requests, in seconds; -1 = sum of provisioning, weight loading and "
                 "engine start");
  options.number("--provisioning-time", provisioning_s, {.least = 0, .most = 1e6},
                 "Time to provision the GPUs of a new replica, in seconds; 0 = the node is already running");
  options.number(
      "--storage-bandwidth", storage_gb_s, {.least = 1e-6, .most = 1e6},
      "Storage bandwidth for loading the weights of a replica, in GB/s; the host links may limit it further");
  options.number("--engine-start-time", engine_start_s, {.least = 0, .most = 1e6},
                 "Time for process start, compilation and CUDA graph capture, in seconds");

  options.heading("Failures and drains");
  options.number("--gpu-mtbf", failures.gpu_mtbf_hours, {.least = 0, .most = 1e9},
                 fmt::format("Mean time between failures of one GPU, in hours (exponential); 0 = no failures. Llama "
                             "3's training saw {:.0f}",
                             llama3_gpu_mtbf_hours));
  options.flag("--retry", failures.retry,
               "Restart the requests of a failed replica on another one; without it they are lost [on]");
  options.list("--drain-at", drain_at,
               "Times at which the longest-running replica is drained and replaced, in seconds, for example 600,1200");

  options.heading(admission_heading);
  options.integer("--admission-limit", admission_limit, {.least = 0, .most = 1'000'000'000},
                  "Refuse a request if its replica already has this many unfinished requests; 0 = never");
  options.number("--admission-ttft", admission_ttft_ms, {.least = 0, .most = 1e9},
                 "Refuse a request if its predicted TTFT exceeds this many milliseconds; 0 = never");
  options.list("--admission-shares", admission_shares,
               "Share of the admission limits that each priority may use, for example 1,0.5: the remainder is reserved "
               "for more urgent requests");

  options.heading(regions_heading);
  options.settings("--region", region_settings,
                   "One region; repeat the flag for each, for example name=eu,replicas=2,share=0.4,hours=6 (share of "
                   "the load; hours that its day runs ahead)");
  options.choice("--region-policy", region_policy, {"nearest", "spill_over"},
                 "Where requests run. nearest = always in their own region; spill_over = in another region when the "
                 "queues of their own are long");
  options.integer(
      "--spill-limit", spill_limit, {.least = 0, .most = 1'000'000'000},
      "With --region-policy spill_over: waiting requests per replica above which requests leave the region");
  options.number("--region-round-trip", round_trip_ms, {.least = 0, .most = 1e6},
                 "Round-trip time between regions, in milliseconds");
  options.number("--region-swing", day.swing, {.least = 0, .most = 0.99},
                 "Amplitude of the daily cycle in each region's share of the load");
  options.number("--region-period", day.period_s, {.least = 1, .most = 7e6},
                 "Length of the daily cycle of regions, in seconds");
}

bool FleetFlags::given() const {
  return scaling.kind != "none" || failures.gpu_mtbf_hours > 0 || !drain_at.empty() || admission().any() ||
         !region_settings.empty();
}

void FleetFlags::check_use(const Options& options) const {
  const std::string kind = "--autoscaler " + scaling.kind;
  if (scaling.kind == "none") {
    options.refuse({"--min-replicas", "--max-replicas", "--scale-interval", "--scale-down-window"}, {}, kind);
  }
  if (scaling.kind != "reactive") {
    options.refuse({"--scale-metric", "--scale-target", "--scale-tolerance"}, {}, kind);
  }
  if (!autoscaler_kind(scaling.kind).needs_capacity) {
    options.refuse({"--scale-utilization", "--scale-tpot", "--replica-rate"}, {}, kind);
  }
  if (scaling.kind != "seasonal") options.refuse({"--scale-period"}, {}, kind);
  if (replica_rate > 0) options.refuse({"--scale-tpot"}, {}, "--replica-rate");
  const bool starts = scaling.kind != "none" || failures.gpu_mtbf_hours > 0 || !drain_at.empty();
  if (!starts) options.refuse({}, {cold_start_heading}, "a fleet in which no replica starts during the run");
  if (cold_start_s >= 0) {
    options.refuse({"--provisioning-time", "--storage-bandwidth", "--engine-start-time"}, {}, "--cold-start");
  }
  if (failures.gpu_mtbf_hours <= 0) options.refuse_without("--gpu-mtbf", {"--retry"});
  constexpr double least_mtbf = 0.001;  // hours: requests must be able to outlive it
  if (failures.gpu_mtbf_hours > 0 && failures.gpu_mtbf_hours < least_mtbf) {
    throw InputError({.source = "--gpu-mtbf",
                      .value = number_text(failures.gpu_mtbf_hours),
                      .expected = "0 (no failures) or at least 0.001 hours"});
  }
  if (!admission().any()) options.refuse_without("--admission-limit or --admission-ttft", {"--admission-shares"});
  if (region_settings.empty()) options.refuse_without("--region", {}, {regions_heading});
  if (region_policy != "spill_over") options.refuse({"--spill-limit"}, {}, "--region-policy " + region_policy);
}

void FleetFlags::add_parts(RunParts& parts) const {
  std::string flag;
  const auto add = [&](bool is_given, RunPart part, const char* name) {
    if (!is_given) return;
    parts.add(part, name);
    flag = name;
  };
  add(!region_settings.empty(), RunPart::regions, "--region");
  add(admission().any(), RunPart::admission, admission_limit > 0 ? "--admission-limit" : "--admission-ttft");
  add(!drain_at.empty(), RunPart::drains, "--drain-at");
  add(failures.gpu_mtbf_hours > 0, RunPart::failures, "--gpu-mtbf");
  if (scaling.kind != "none") flag = "--autoscaler";
  if (!flag.empty()) parts.add(RunPart::fleet, flag);
}

FleetConfig FleetFlags::fleet(std::vector<ReplicaGroup>& groups, bool pools) const {
  check_groups(groups, pools);
  FleetConfig result{.members = {},
                     .pools = {},
                     .region_policy = {.spill = region_policy == "spill_over" ? Spill::queued : Spill::never,
                                       .most_waiting = spill_limit,
                                       .round_trip = to_picoseconds(Seconds(round_trip_ms / 1e3))},
                     .scaling = scaling,
                     .failures = failures,
                     .drains = {},
                     .admission = admission()};
  if (pools) {
    result.pools = {pool(groups.front(), groups.front().count, ReplicaWork::prompts),
                    pool(groups.back(), groups.back().count, ReplicaWork::decodes)};
  } else if (region_settings.empty()) {
    result.pools = {pool(groups.front(), groups.front().count, ReplicaWork::all)};
  }
  for (const RegionFlags& region : regions()) {
    result.pools.push_back(pool(groups.front(), region.replicas, ReplicaWork::all));
  }
  for (ReplicaGroup& group : groups) group.count = 0;
  for (size_t i = 0; i < result.pools.size(); ++i) {
    ReplicaGroup& group = groups[pools ? i : 0];
    const FleetMember member{.devices = summary_of(group).devices_each, .cold_start = cold_start(group)};
    result.members.insert(result.members.end(), static_cast<size_t>(result.pools[i].members), member);
    group.count += result.pools[i].members;
  }
  result.scaling.by_kv_use = scale_metric == "kv_use";
  result.scaling.target = scale_target > 0 ? scale_target : result.scaling.by_kv_use ? usual_kv_use : usual_outstanding;
  for (const std::string& at : drain_at) {
    const double seconds = parse_listed_number("--drain-at", at, seconds_of_time,
                                               "seconds from the start of the run, for example 600,1200");
    result.drains.push_back(to_picoseconds(Seconds(seconds)));
  }
  std::sort(result.drains.begin(), result.drains.end());
  return result;
}

void FleetFlags::check_groups(const std::vector<ReplicaGroup>& groups, bool pools) const {
  if (groups.front().data_parallel_ranks > 1 || (groups.size() > 1 && !pools)) {
    throw InputError({.source = groups.size() > 1 ? "--replica" : "--data-parallel-size",
                      .value = "together with fleet flags",
                      .expected = "identical replicas of one engine each (--replicas)"});
  }
  if (!region_settings.empty() && groups.front().count > 1) {
    throw InputError({.source = "--replicas",
                      .value = "with --region",
                      .expected = "the number of replicas in each --region (replicas=N)"});
  }
}

FleetPool FleetFlags::pool(const ReplicaGroup& group, int64_t replicas, ReplicaWork work) const {
  FleetPool result{.members = replicas, .at_start = replicas, .capacity = capacity(group, work)};
  if (scaling.kind == "none") return result;
  // One replica is what nobody asked for.
  if (replicas == 1) result.at_start = scaling.least;
  result.members = max_replicas > 0 ? max_replicas : result.at_start;
  if (result.at_start < scaling.least || result.at_start > result.members) {
    throw InputError({.source = "--replicas",
                      .value = fmt::format("{}", result.at_start),
                      .expected = fmt::format("a number from --min-replicas {} to --max-replicas {}", scaling.least,
                                              result.members)});
  }
  return result;
}

std::vector<FleetFlags::RegionFlags> FleetFlags::regions() const {
  std::vector<RegionFlags> result;
  for (const std::string& settings : region_settings) {
    RegionFlags one;
    double hours = 0;
    parse_settings("--region", settings, [&](Options& options) {
      options.text("--name", one.region.name, "");
      options.integer("--replicas", one.replicas, replica_counts, "");
      options.number("--share", one.region.share, {.least = 0, .most = 1e12}, "");
      options.number("--hours", hours, {.least = -24, .most = 24}, "");
    });
    one.region.shift_s = hours / 24 * day.period_s;
    result.push_back(std::move(one));
  }
  const bool any =
      std::any_of(result.begin(), result.end(), [](const RegionFlags& one) { return one.region.share > 0; });
  if (!result.empty() && !any) {
    throw InputError({.source = "--region", .path = "share", .expected = "a share above 0 in at least one region"});
  }
  return result;
}

Picoseconds FleetFlags::cold_start(const ReplicaGroup& group) const {
  if (cold_start_s >= 0) return to_picoseconds(Seconds(cold_start_s));
  const ColdStart parts{.provisioning = Seconds(provisioning_s),
                        .storage = BytesPerSecond(storage_gb_s * 1e9),
                        .engine_start = Seconds(engine_start_s)};
  const auto link = group.models.kernels.device().host_bandwidth;
  return to_picoseconds(cold_start_time(parts, Bytes(group.memory.weights.value),
                                        static_cast<int>(summary_of(group).devices_each),
                                        link ? link->value : BytesPerSecond(0)));
}

ReplicaCapacity FleetFlags::capacity(const ReplicaGroup& group, ReplicaWork work) const {
  if (replica_rate > 0) {
    return [rate = replica_rate](double /*input*/, double /*output*/) { return rate; };
  }
  const std::optional<double> tpot = scale_tpot_ms > 0 ? std::optional(scale_tpot_ms / 1e3) : std::nullopt;
  return [config = group.config, tpot, work](double input, double output) {
    const Speculation& drafts = config.options.speculation;
    const bool is_drafted = drafts.draft_tokens > 0;
    const double of_a_rank = requests_per_second(
        *config.times, config.options,
        {.input_tokens = input,
         .output_tokens = output,
         .tpot_s = tpot,
         .work = work,
         .tokens_per_decode = is_drafted ? drafts.acceptance.expected_tokens(drafts.draft_tokens) : 1,
         .verified_tokens = is_drafted ? drafts.verified_tokens : 0});
    return of_a_rank * static_cast<double>(config.options.lock_step_ranks);
  };
}

AdmissionSettings FleetFlags::admission() const {
  AdmissionSettings result;
  if (admission_limit > 0) result.most_outstanding = admission_limit;
  if (admission_ttft_ms > 0) result.most_ttft = to_picoseconds(Seconds(admission_ttft_ms / 1e3));
  for (const std::string& share : admission_shares) {
    result.shares.push_back(parse_listed_number("--admission-shares", share, {.least = 0, .most = 1},
                                                "shares from 0 to 1, for example 1,0.5"));
  }
  return result;
}

LoadMaker FleetFlags::from_regions(LoadMaker load) const {
  if (region_settings.empty()) return load;
  std::vector<Region> all;
  for (const RegionFlags& one : regions()) all.push_back(one.region);
  return [load = std::move(load), all, day = day](uint64_t seed) { return with_regions(load(seed), all, day, seed); };
}

}  // namespace foretoken
