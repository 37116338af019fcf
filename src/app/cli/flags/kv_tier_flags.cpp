#include "app/cli/flags/kv_tier_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/byte_size.h"
#include "base/error.h"
#include "base/text.h"
#include "serving/engine/engine_tiers.h"
#include "serving/schedulers/list.h"

namespace foretoken {
namespace {

constexpr const char* tier_flag = "--kv-tier";
constexpr const char* tiers_heading = "KV tiers below the GPU";

std::string kv_tier_help() {
  std::string text =
      "Memory tier below the GPU's KV cache; repeat the flag for each tier, nearest first. Settings: kind, size "
      "(200GiB, unlimited), bandwidth or read-bandwidth and write-bandwidth (50GB/s; per GPU for peer and host, per "
      "node otherwise), latency (us). Kinds:";
  for (const KvTierKind& kind : kv_tier_kinds()) {
    text += fmt::format("{}{} = {}", text.ends_with(':') ? " " : "; ", kind.name, kind.summary);
  }
  return text;
}

[[noreturn]] void fail_setting(const std::string& key, const std::string& value, const std::string& expected) {
  throw InputError({.source = tier_flag, .path = key, .value = printable(value), .expected = expected});
}

double bytes_of(const std::string& key, const std::string& text, bool per_second) {
  const std::optional<double> bytes = parse_bytes(text, per_second);
  if (!bytes)
    fail_setting(key, text, per_second ? "a rate such as 50GB/s" : "a size such as 200GiB, 1.5TB, or unlimited");
  return *bytes;
}

BytesPerSecond speed_of(const std::string& key, const std::string& text) {
  const double speed = bytes_of(key, text, true);
  if (speed < 1e6) fail_setting(key, text, "at least 1MB/s");
  return BytesPerSecond(speed);
}

}  // namespace

void KvTierFlags::declare(Options& options) {
  options.heading(tiers_heading);
  options.settings(tier_flag, tiers, kv_tier_help());
  options.number("--kv-offloading-size", offloading_gib, {.least = 0, .most = 1e6},
                 "Host memory for the KV cache of each server, in "
                 "GiB, as in vLLM. Adds a first tier of kind host "
                 "that servers on one node do not share");
  options.choice("--kv-write-policy", writes, {std::begin(tier_write_names), std::end(tier_write_names)},
                 "When to write blocks to the tier: when the GPU evicts them, when they are computed, or when they are "
                 "used a second time");
  std::vector<std::string> ways(std::begin(tier_load_names), std::end(tier_load_names));
  ways.insert(ways.begin(), "engine");
  options.choice(
      "--kv-load", loads, ways,
      "How blocks are loaded: blocking = the step waits for all of them; by_layer = it waits layer by layer; apart = "
      "only that request waits (vllm). engine = apart if the scheduler can, else by_layer; blocking for trtllm");
  options.flag("--kv-prefetch", prefetch, "While a request waits, move its blocks from deeper tiers to the first tier");
  options.flag("--kv-recompute-if-faster", recompute_if_faster,
               "Recompute blocks when that is faster than loading them");
  options.flag("--kv-swap", swap, "Move preempted sequences to the first tier instead of recomputing them");
}

void KvTierFlags::check_use(const Options& options) const {
  if (!given()) options.refuse_without("--kv-tier", {}, {tiers_heading});
}

KvTier KvTierFlags::read_tier(const std::string& text, const ReplicaGroup& group, const std::optional<Node>& node,
                              double kv_bytes_per_token) const {
  std::string kind_name, size, bandwidth, read, write;
  double latency_us = -1;
  parse_settings(tier_flag, text, [&](Options& options) {
    options.choice("--kind", kind_name, kv_tier_kind_names(), "Kind of memory", true);
    options.text("--size", size, "Capacity", true);
    options.text("--bandwidth", bandwidth, "Bandwidth in each direction");
    options.text("--read-bandwidth", read, "Bandwidth toward the GPU");
    options.text("--write-bandwidth", write, "Bandwidth away from the GPU");
    options.number("--latency", latency_us, {.least = 0, .most = 1e9}, "Latency of each transfer, in microseconds");
  });
  if (kind_name.empty()) fail_setting("kind", text, "kind=host, or another kind listed in --help");
  if (size.empty()) fail_setting("size", text, "a size, for example size=200GiB");
  const KvTierKind& kind = kv_tier_kind(kind_name);
  KvTier tier{.kind = &kind};
  tier.capacity_tokens = unlimited_tokens;
  if (size != "unlimited") {
    tier.capacity_tokens = static_cast<int64_t>(std::min(bytes_of("size", size, false) / kv_bytes_per_token, 1e15));
  }
  if (!bandwidth.empty() && (!read.empty() || !write.empty()))
    fail_setting("bandwidth", bandwidth, "either bandwidth, or read-bandwidth and write-bandwidth");
  if (!bandwidth.empty()) read = write = bandwidth;
  const Device& device = group.models.kernels.device();
  const std::optional<TierSpeed> usual = kind.usual_speed(device, node);
  if (!usual && (read.empty() || write.empty())) {
    fail_setting("bandwidth", kind_name,
                 fmt::format("bandwidth=...GB/s, because the bandwidth of this tier is not known for {}", device.name));
  }
  const TierSpeed speed = of_all_devices({.read = read.empty() ? usual->read : speed_of("read-bandwidth", read),
                                          .write = write.empty() ? usual->write : speed_of("write-bandwidth", write),
                                          .latency = latency_us >= 0 ? Seconds(latency_us * 1e-6)
                                                     : usual         ? usual->latency
                                                                     : Seconds(0)},
                                         kind, group);
  tier.read = speed.read;
  tier.write = speed.write;
  tier.latency = speed.latency;
  return tier;
}

TierLoads KvTierFlags::load_way(const std::string& scheduler) const {
  if (loads == "engine") return usual_tier_loads(scheduler);
  if (loads == "apart" && !scheduler_kind(scheduler).reads.loads_apart) {
    throw InputError(
        {.source = "--kv-load", .value = "apart", .expected = "blocking or by_layer with the scheduler " + scheduler});
  }
  const auto* way = std::find(std::begin(tier_load_names), std::end(tier_load_names), loads);
  return static_cast<TierLoads>(way - std::begin(tier_load_names));
}

KvTierSettings KvTierFlags::settings(const std::vector<ReplicaGroup>& groups, bool separate_pools,
                                     const Library& library) const {
  const ReplicaGroup& group = groups.front();
  if (groups.size() > 1 && !separate_pools) {
    throw InputError({.source = tier_flag,
                      .value = "with several --replica",
                      .expected = "replicas of a single kind when KV tiers are used"});
  }
  const std::optional<Node> node = library.node_of(group.models.kernels.device(), group.placement);
  KvTierSettings result = tier_settings(group, node);
  if (offloading_gib > 0) {
    const std::string size = fmt::format("kind=host,size={}GiB", number_text(offloading_gib));
    result.tiers.push_back(read_tier(size, group, node, result.kv_bytes_per_token));
    result.tiers.back().is_own = true;
  }
  for (const std::string& text : tiers) result.tiers.push_back(read_tier(text, group, node, result.kv_bytes_per_token));
  const auto* policy = std::find(std::begin(tier_write_names), std::end(tier_write_names), writes);
  result.writes = static_cast<TierWrites>(policy - std::begin(tier_write_names));
  result.loads = load_way(group.config.scheduler);
  result.prefetch = prefetch;
  result.recompute_if_faster = recompute_if_faster;
  result.swap = swap;
  return result;
}

}  // namespace foretoken
