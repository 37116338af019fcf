#include "serving/engine/engine_tiers.h"

#include <algorithm>

#include "base/error.h"
#include "model/weights.h"
#include "serving/schedulers/list.h"

namespace foretoken {

TierLoads usual_tier_loads(std::string_view scheduler) {
  const OptionsRead& reads = scheduler_kind(scheduler).reads;
  return reads.loads_apart ? TierLoads::apart : reads.waits_for_loads ? TierLoads::blocking : TierLoads::by_layer;
}

KvTierSettings tier_settings(const ReplicaGroup& group, const std::optional<Node>& node) {
  const SchedulerOptions& options = group.config.options;
  if (!options.enable_prefix_caching || !scheduler_kind(group.config.scheduler).reads.prefix_caching) {
    throw InputError({.field = "kv_tier",
                      .value = "scheduler " + group.config.scheduler,
                      .expected = "a scheduler with prefix caching, which KV tiers need: add {enable_prefix_caching}"});
  }
  KvTierSettings settings;
  settings.kv_bytes_per_token = kv_bytes_per_token(group.model, group.kv_dtype).value();
  if (settings.kv_bytes_per_token <= 0) {
    throw InputError(
        {.field = "kv_tier", .value = group.model.name, .expected = "a model whose KV cache grows with the sequence"});
  }
  const int64_t on_a_node = node ? std::max<int64_t>(1, node->device_count / group.cache_devices()) : 1;
  for (int64_t i = 0; i < group.count; ++i) settings.node_of_replica.push_back(i / on_a_node);
  settings.layers = static_cast<int64_t>(group.model.layers.size());
  settings.loads = usual_tier_loads(group.config.scheduler);
  return settings;
}

TierSpeed of_all_devices(TierSpeed speed, const KvTierKind& kind, const ReplicaGroup& group) {
  if (!kind.link_of_devices) return speed;
  const auto devices = static_cast<double>(group.cache_devices());
  return {.read = BytesPerSecond(devices * speed.read.value()),
          .write = BytesPerSecond(devices * speed.write.value()),
          .latency = speed.latency};
}

KvTierSettings server_memory_tier(const ReplicaGroup& group, int64_t servers, Bytes host_memory) {
  KvTierSettings settings = tier_settings(group, std::nullopt);
  const KvTierKind& host = kv_tier_kind("host");
  const std::optional<TierSpeed> usual = host.usual_speed(group.models.kernels.device(), std::nullopt);
  if (!usual) {
    throw InputError({.field = "kv_tier",
                      .value = group.models.kernels.device().name,
                      .expected = "a device whose file has host_bandwidth_gb_per_s"});
  }
  const TierSpeed speed = of_all_devices(*usual, host, group);
  settings.tiers = {{.kind = &host,
                     .capacity_tokens = static_cast<int64_t>(host_memory.value() / settings.kv_bytes_per_token),
                     .read = speed.read,
                     .write = speed.write,
                     .latency = speed.latency,
                     .is_own = true}};
  settings.node_of_replica.assign(static_cast<size_t>(servers), 0);
  return settings;
}

}  // namespace foretoken
