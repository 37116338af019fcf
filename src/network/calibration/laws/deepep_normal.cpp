// DeepEP's normal kernels: a token goes once to each rank it reaches (and once to each host), moved by the processors
// that the kernel is given. A start, then the slower of the processors' work and the wire.
#include <algorithm>
#include <cmath>

#include "base/portable_math.h"
#include "network/calibration/laws/expert_traffic.h"
#include "network/calibration/laws/list.h"

namespace foretoken {
namespace deepep_normal {
namespace {

enum : size_t { start, per_token, per_copy, per_value, per_copied_value, link_share, network_start, card_share };

constexpr LawConstant normal_constants[] = {
    {"start_us", 35, 2, 400},
    // Of each processor, microseconds for one token, one copy of it, 1000 values of it, 1000 values of a copy.
    {"per_token_us", 0.2, 1e-4, 10},
    {"per_copy_us", 0.06, 1e-4, 10},
    {"per_1000_values_us", 0.06, 1e-4, 10},
    {"per_1000_copied_values_us", 0.04, 1e-4, 10},
    {"link_share", 0.8, 0.02, 4},
    {"network_start_us", 20, 0.1, 2000},
    {"card_share", 0.8, 0.02, 4},
};

// Close to the larger of the two, and smooth where they meet.
double either(double a, double b) {
  constexpr double power = 5;
  const double larger = std::max(a, b), ratio = std::min(a, b) / larger;
  return larger * portable_pow(1 + portable_pow(ratio, power), 1 / power);
}

class DeepepNormalLaw : public CommunicationLaw {
 public:
  std::span<const LawConstant> constants() const override { return normal_constants; }

  LawParts parts(const CommunicationCall& call, const SystemTraits& system,
                 std::span<const double> constants) const override {
    const ExpertTraffic& expert = call.expert;
    const auto ranks = static_cast<double>(call.ranks), tokens = static_cast<double>(expert.tokens);
    const double copies = places_reached(ranks, static_cast<double>(expert.top_k));
    const double thousands = static_cast<double>(expert.hidden) / 1000;
    const double processors = expert.processors > 0 ? static_cast<double>(expert.processors) : 20;
    const double work = 1e-6 * tokens / processors *
                        (constants[per_token] + constants[per_copy] * copies + constants[per_value] * thousands +
                         constants[per_copied_value] * copies * thousands);
    const double bytes = tokens * copies * static_cast<double>(expert.hidden) * expert.bytes_per_value;
    double wire = bytes * (ranks - 1) / ranks / (system.link_rate * constants[link_share]);
    double seconds = 1e-6 * constants[start];
    if (call.nodes > 1) {
      seconds += 1e-6 * constants[network_start];
      wire =
          either(wire, card_bytes(call, expert.bytes_per_value) / (card_rate_or_usual(system) * constants[card_share]));
    }
    return {.apart = seconds + either(work, wire)};
  }
};

}  // namespace
}  // namespace deepep_normal

const CommunicationLaw& deepep_normal_law() {
  static const deepep_normal::DeepepNormalLaw law;
  return law;
}

}  // namespace foretoken
