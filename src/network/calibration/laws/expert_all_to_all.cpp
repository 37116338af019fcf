// TensorRT-LLM's MoE all-to-all over NVLink, phase by phase: a start, a bit for every doubling of the ranks, work for
// each token, and the wire for each rank a token reaches. All ranks of a rack share one NVLink domain, so hosts do not
// matter.
#include <cmath>

#include "network/calibration/laws/expert_traffic.h"
#include "network/calibration/laws/list.h"

namespace foretoken {
namespace expert_all_to_all {
namespace {

enum : size_t { start, doubling, per_token, local_share, link_share };

constexpr LawConstant all_to_all_constants[] = {
    {"start_us", 12, 1, 100},        {"doubling_us", 0.8, 0.01, 20}, {"per_token_us", 0.005, 1e-6, 1},
    {"local_share", 0.5, 0.01, 100},  // of the link rate, for the copies that a rank reads or writes on either side
    {"link_share", 0.5, 0.01, 100},
};

class ExpertAllToAllLaw : public CommunicationLaw {
 public:
  std::span<const LawConstant> constants() const override { return all_to_all_constants; }

  LawParts parts(const CommunicationCall& call, const SystemTraits& system,
                 std::span<const double> constants) const override {
    const ExpertTraffic& expert = call.expert;
    const auto ranks = static_cast<double>(call.ranks), tokens = static_cast<double>(expert.tokens);
    const double row = static_cast<double>(expert.hidden) * expert.bytes_per_value;
    const double copies = places_reached(ranks, static_cast<double>(expert.top_k));
    const double wire = tokens * row *
                        (copies * (ranks - 1) / ranks / constants[link_share] + copies / constants[local_share]) /
                        system.link_rate;
    return {.apart =
                1e-6 * (constants[start] + constants[doubling] * doublings(ranks) + constants[per_token] * tokens) +
                wire};
  }
};

}  // namespace
}  // namespace expert_all_to_all

const CommunicationLaw& expert_all_to_all_law() {
  static const expert_all_to_all::ExpertAllToAllLaw law;
  return law;
}

}  // namespace foretoken
