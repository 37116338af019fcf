#include "network/calibration/communication_call.h"

#include <algorithm>

#include <fmt/format.h>

#include "hardware/generation.h"
#include "network/transfer/collective.h"

namespace foretoken {

bool has_reducing_switch(const Device& device) {
  return device.link_bandwidth && kernel_generation(device).reduces_in_switch;
}

AllReduceShots all_reduce_shots(const CommunicationCall& call) {
  const std::string_view operation = call.operation;
  if (!operation.starts_with("vllm_") && !operation.starts_with("sglang_")) return AllReduceShots::none;
  constexpr double kib = 1024;
  const bool is_long = call.bytes >= (call.ranks <= 4 ? 512 * kib : 256 * kib);
  return call.ranks > 2 && is_long ? AllReduceShots::two : AllReduceShots::one;
}

std::string with_shots(std::string_view name, AllReduceShots shots) {
  return fmt::format("{}{}", name, shots == AllReduceShots::two ? " two-shot" : "");
}

double swept_size(const CommunicationCall& call) {
  return call.bytes > 0 ? call.bytes : static_cast<double>(call.expert.tokens);
}

std::string series_of(const CommunicationCall& call) {
  return with_shots(series_without_shots(call), all_reduce_shots(call));
}

std::string series_without_shots(const CommunicationCall& call) {
  if (call.bytes > 0) return call.operation;
  const ExpertTraffic& expert = call.expert;
  return fmt::format("{} h{} k{} e{} s{} nodes{}", call.operation, expert.hidden, expert.top_k, expert.experts,
                     expert.processors, call.nodes);
}

double SystemTraits::rate_among(int64_t ranks) const {
  return pair_rate > 0 ? std::min(link_rate, static_cast<double>(ranks - 1) * pair_rate) : link_rate;
}

SystemTraits system_traits(const Device& device, const std::optional<Node>& node) {
  const Fabric fabric = fabric_of(device);
  SystemTraits traits{.name = device.name,
                      .link_rate = fabric.per_device.value(),
                      .is_host_link = fabric.is_host_link,
                      .reduces_in_switch = has_reducing_switch(device),
                      .is_like_another = device.like.has_value()};
  if (device.processors) traits.processors = device.processors->value;
  if (device.boost_clock) traits.clock = device.boost_clock->value.value();
  if (!node) return traits;
  if (node->fabric.kind == NodeFabricKind::pcie) {
    traits.link_rate = node->fabric.bandwidth.value.value();
    traits.is_host_link = true;
    traits.reduces_in_switch = false;
  }
  if (has_neighbors_alone(node->fabric)) traits.link_rate = node->fabric.bandwidth.value.value();
  if (const BytesPerSecond pair = pair_bandwidth(*node); pair < node->fabric.bandwidth.value) {
    traits.pair_rate = pair.value();
  }
  // A rack-scale node has many hosts; each has two CPUs.
  traits.devices_per_host = traits.devices_per_domain = node->device_count;
  if (node->host && node->host->count > 2) {
    traits.devices_per_host = std::max<int64_t>(1, int64_t{2} * node->device_count / node->host->count);
  }
  if (const auto rate = network_bandwidth_per_device(*node)) traits.card_rate = rate->value();
  return traits;
}

}  // namespace foretoken
