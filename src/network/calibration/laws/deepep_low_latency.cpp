// DeepEP's low-latency kernels: every token goes straight to each of its experts, k copies, in fp8 with scales one way
// and in bf16 back. A start, a bit for every expert's counter, the wire, and the work of the processors that send: with
// few experts only as many send as there are.
#include <algorithm>
#include <cmath>

#include "network/calibration/laws/expert_traffic.h"
#include "network/calibration/laws/list.h"

namespace foretoken {
namespace deepep_low_latency {
namespace {

enum : size_t { start, per_expert, link_share, per_token, per_value, network_start, network_doubling, card_share };

constexpr LawConstant low_latency_constants[] = {
    {"start_us", 9, 1, 60},
    {"per_expert_us", 0.012, 1e-4, 0.5},
    {"link_share", 0.7, 0.05, 1.5},
    {"per_token_us", 0.5, 1e-3, 20},       // of a sending processor
    {"per_1000_values_us", 0.1, 1e-3, 5},  // likewise
    {"network_start_us", 10, 0.1, 200},
    {"network_doubling_us", 2, 0.01, 50},  // for each doubling of the hosts
    {"card_share", 0.9, 0.05, 1.5},
};

class DeepepLowLatencyLaw : public CommunicationLaw {
 public:
  std::span<const LawConstant> constants() const override { return low_latency_constants; }

  LawParts parts(const CommunicationCall& call, const SystemTraits& system,
                 std::span<const double> constants) const override {
    const ExpertTraffic& expert = call.expert;
    const auto ranks = static_cast<double>(call.ranks), experts = static_cast<double>(expert.experts);
    const auto tokens = static_cast<double>(expert.tokens), hidden = static_cast<double>(expert.hidden);
    const auto nodes = static_cast<double>(call.nodes);
    const double bytes = tokens * static_cast<double>(expert.top_k) * hidden * expert.bytes_per_value;
    const double senders = std::ceil(experts / std::ceil(experts / system.processors));
    double wire = bytes * (ranks - 1) / ranks / (system.link_rate * constants[link_share]);
    double seconds = 1e-6 * (constants[start] + constants[per_expert] * experts);
    if (call.nodes > 1) {
      seconds += 1e-6 * (constants[network_start] + constants[network_doubling] * doublings(nodes));
      wire = std::max(wire, bytes * (nodes - 1) / nodes / (card_rate_or_usual(system) * constants[card_share]));
    }
    const double sending = 1e-6 * tokens / senders * (constants[per_token] + constants[per_value] * hidden / 1000);
    return {.apart = seconds + wire + sending};
  }
};

}  // namespace
}  // namespace deepep_low_latency

const CommunicationLaw& deepep_low_latency_law() {
  static const deepep_low_latency::DeepepLowLatencyLaw law;
  return law;
}

}  // namespace foretoken
