// NCCL inside one host: a launch, one hop of latency for each step of the algorithm, and a curve over the ideal wire
// time. Up to 16 KiB the low-latency protocol sends whole words with flags, and only hops count; then LL128, then, at a
// wire time of 2 to 16 us that differs by collective and ranks, Simple with its chunks and fences. The curve holds all
// of that: over the ideal wire time it is nearly the same for NVLink 3, 4 and 5, and for two devices on PCIe.
#include <cmath>

#include "network/calibration/laws/list.h"

namespace foretoken {
namespace {

enum : size_t { launch, hop, contention_of_four, contention_of_eight };

constexpr LawConstant nccl_constants[] = {
    {"launch_us", 6, 1, 60},
    {"hop_us", 1.1, 0.05, 10},
    // On PCIe from three devices on, how many times longer than one device's slot alone: bridges and sockets are
    // shared.
    {"contention_of_four", 2, 0.5, 40},
    {"contention_of_eight", 4, 0.5, 100},
};

double steps_of(const CommunicationCall& call) {
  const auto ranks = static_cast<double>(call.ranks);
  if (call.operation == "all_reduce") return 2 * (ranks - 1);
  if (call.operation == "alltoall") return doublings(ranks);
  return ranks - 1;
}

bool is_shared(const CommunicationCall& call, const SystemTraits& system) {
  return system.is_host_link && call.ranks > 2;
}

class NcclLaw : public CommunicationLaw {
 public:
  std::span<const LawConstant> constants() const override { return nccl_constants; }

  LawParts parts(const CommunicationCall& call, const SystemTraits& system,
                 std::span<const double> constants) const override {
    LawParts parts{.apart = 1e-6 * (constants[launch] + steps_of(call) * constants[hop]),
                   .curve = call.operation,
                   .fallback = call.operation};
    parts.wire_seconds = message_wire_bytes(call, call.operation == "all_reduce") / system.link_rate;
    if (is_shared(call, system)) {
      parts.wire_seconds *= constants[call.ranks <= 4 ? contention_of_four : contention_of_eight];
    }
    // NCCL reduces in the switch when all eight devices of a node take part; with fewer it keeps its rings.
    if (call.operation == "all_reduce" && system.reduces_in_switch && call.ranks >= 8) {
      parts.curve = "all_reduce in switch";
    }
    return parts;
  }

  bool wire_is_known(const CommunicationCall& call, const SystemTraits& system) const override {
    return !is_shared(call, system);
  }
  bool teaches_curve(const CommunicationCall& call, const SystemTraits& system) const override {
    return !is_shared(call, system);
  }
  bool is_floor(const CommunicationCall& call) const override { return call.bytes <= 8192; }

  std::vector<size_t> told_by(const CommunicationCall& call, const SystemTraits& system) const override {
    if (call.bytes <= 65536) return {launch, hop};
    if (!is_shared(call, system)) return {};
    return {contention_of_four, contention_of_eight};
  }
};

}  // namespace

const CommunicationLaw& nccl_law() {
  static const NcclLaw law;
  return law;
}

}  // namespace foretoken
