#include "app/cli/flags/ffn_flags.h"

#include <fmt/format.h>

#include "base/byte_size.h"
#include "base/error.h"
#include "base/text.h"
#include "compose/serving_engine.h"
#include "serving/simulation/disaggregation.h"

namespace foretoken {
namespace {

constexpr const char* pool_flag = "--ffn-pool";
// Of a message between many senders and many receivers over RDMA, queueing and completion included: an assumption.
constexpr double usual_latency_us = 20;
// Weights beside what a runtime and the tokens in flight need.
constexpr double usable_memory = 0.9;

BytesPerSecond port(const Device& device, const PlacementSpec& placement, int64_t all_devices, const std::string& given,
                    const Library& library) {
  if (!given.empty()) {
    const std::optional<double> bytes = parse_bytes(given, true);
    if (!bytes || *bytes < 1e6) {
      throw InputError(
          {.source = pool_flag, .path = "bandwidth", .value = printable(given), .expected = "a rate such as 50GB/s"});
    }
    return BytesPerSecond(*bytes);
  }
  if (const std::optional<Node> node = library.node_of(device, placement)) {
    if (const auto bandwidth = transfer_bandwidth_per_device(*node, all_devices)) return *bandwidth;
  }
  throw InputError({.source = pool_flag,
                    .path = "bandwidth",
                    .expected = fmt::format(
                        "bandwidth=...GB/s out of each device, because the network of {} is not known", device.name)});
}

void check_memory(const Model& model, const FfnPool& pool) {
  const Device& device = pool.models.kernels.device();
  const StepRequest one_token{.phase = StepPhase::decode, .batch = 1, .context_len = 1};
  const double weights = rank_memory(ffn_part(model), one_token, ffn_plan(model, pool), 0).weights.value();
  const double room = usable_memory * allocatable_bytes(device).value;
  if (weights <= room) return;
  throw InputError(
      {.source = pool_flag,
       .path = "count",
       .value = fmt::format("{}: {} of weights on each {}", pool.devices, bytes_text(weights), device.name),
       .expected =
           fmt::format("enough devices for the feed-forward layers, with room for {} on each", bytes_text(room))});
}

}  // namespace

void FfnFlags::declare(Options& options) {
  options.heading("Separate attention and feed-forward GPUs");
  options.settings(pool_flag, pool,
                   "GPUs that run the feed-forward layers or experts of each replica, while its -tp GPUs keep "
                   "attention and the KV cache. Settings: count=N, device, attention-groups (groups of -tp GPUs that "
                   "share the pool), micro-batches, bandwidth (50GB/s out of each GPU), latency (us)");
}

FfnPool FfnFlags::read(const Model& model, const Device& attention_device, const ParallelPlan& attention_plan,
                       const PlacementSpec& placement, Tier tier, const Library& library) const {
  std::string device = attention_device.name, bandwidth;
  int64_t count = 0, groups = 1, micro_batches = 3;
  double latency_us = usual_latency_us;
  parse_settings(pool_flag, pool, [&](Options& options) {
    options.text("--device", device, "GPU of the pool");
    options.integer("--count", count, {.least = 1, .most = 4096}, "Number of GPUs in the pool", true);
    options.integer("--attention-groups", groups, {.least = 1, .most = 4096}, "Number of groups of attention GPUs");
    options.integer("--micro-batches", micro_batches, {.least = 1, .most = 64}, "Micro-batches per step");
    options.text("--bandwidth", bandwidth, "Bandwidth out of each GPU");
    options.number("--latency", latency_us, {.least = 0, .most = 1e6}, "Latency of a transfer, in microseconds");
  });
  if (count == 0) {
    throw InputError({.source = pool_flag,
                      .path = "count",
                      .value = printable(pool),
                      .expected = "count=N, the number of GPUs in the pool"});
  }
  if (attention_plan.pipeline > 1) {
    throw InputError(
        {.source = pool_flag, .value = "with -pp", .expected = "no pipeline stages: use micro-batches instead"});
  }
  const ParallelPlan plan{.tensor = count};
  FfnPool result{.models = library.device_models(device, plan, tier),
                 .devices = count,
                 .attention_groups = groups,
                 .micro_batches = micro_batches,
                 .latency = Seconds(latency_us * 1e-6)};
  const int64_t all = count + groups * attention_plan.tensor;
  result.attention_port = port(attention_device, placement, all, bandwidth, library);
  const Device& ffn_device = result.models.kernels.device();
  PlacementSpec of_ffn = placement;
  // A machine that was named has the attention devices.
  if (ffn_device.name != attention_device.name) of_ffn.node = of_ffn.cluster = "";
  result.ffn_port = port(ffn_device, of_ffn, all, bandwidth, library);
  check_memory(model, result);
  return result;
}

}  // namespace foretoken
