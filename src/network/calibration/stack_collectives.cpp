#include "network/calibration/stack_collectives.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "network/transfer/collective.h"

namespace foretoken {
namespace {

std::optional<CommunicationCall> call_of(const CollectiveShape& collective, std::string_view kernel) {
  if (kernel.empty() || collective.kind != CollectiveKind::all_reduce || collective.bytes <= 0)
    return nccl_call(collective);
  return engine_all_reduce_call(kernel, false, collective.ranks, collective.bytes);
}

}  // namespace

CommunicationCall engine_all_reduce_call(std::string_view kernel, bool eager, int64_t ranks, double bytes) {
  return {.law = "custom_all_reduce",
          .operation = fmt::format("{}_{}", kernel, eager ? "eager" : "graph"),
          .variant = fmt::format("{} bfloat16", kernel),
          .ranks = ranks,
          .bytes = bytes};
}

std::optional<CommunicationCall> nccl_call(const CollectiveShape& collective) {
  if (collective.bytes <= 0) return std::nullopt;
  CommunicationCall call{.law = "nccl",
                         .operation = std::string(collective_kind_name(collective.kind)),
                         .variant = "half",
                         .ranks = collective.ranks,
                         .bytes = collective.bytes};
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return call;
    case CollectiveKind::all_to_all:
      call.operation = "alltoall";
      return call;
    default:
      return std::nullopt;
  }
}

Estimate stack_collective_seconds(const CollectiveShape& collective, std::string_view kernel, const Device& device,
                                  const CommunicationPredictor* predictor) {
  if (collective.ranks <= 1) return exactly(0);
  const std::optional<CommunicationCall> call = call_of(collective, kernel);
  if (predictor != nullptr && call && collective.ranks <= predictor->system().devices_per_domain) {
    if (const auto time = predictor->estimate(*call)) return time->seconds;
  }
  return collective_seconds(collective, fabric_of(device));
}

double busy_processors(const CommunicationCall& call, const SystemTraits& system) {
  if (call.law == "deepep_low_latency") return system.processors;
  if (call.expert.processors > 0) return static_cast<double>(call.expert.processors);
  constexpr double most_channels = 24, bytes_per_channel = 65536;
  const double channels = std::ceil(call.bytes / bytes_per_channel);
  return std::clamp(channels, 1.0, std::min(most_channels, system.processors));
}

double overlap_slowdown(const CommunicationCall& call, const SystemTraits& system) {
  // Compute is never stopped altogether: the scheduler still finds gaps.
  const double left = std::max(system.processors - busy_processors(call, system), 0.1 * system.processors);
  return system.processors / left;
}

}  // namespace foretoken
