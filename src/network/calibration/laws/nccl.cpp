// NCCL inside one host: a launch, one hop of latency for each step of the algorithm, the wire at the sheet's rate, and
// what the protocols add to that. Up to 16 KiB the low-latency protocol sends whole words with flags, and only hops
// count; then LL128; then, at a wire time of 2 to 16 us that differs by collective and ranks, Simple with its chunks
// and fences. What they add is a curve over the wire time, nearly the same for NVLink 3, 4 and 5 and for two devices on
// PCIe once it is scaled with the system: where hops are slow, fences are.
#include <cmath>

#include "network/calibration/laws/list.h"

namespace foretoken {
namespace nccl {
namespace {

enum : size_t { launch, hop, bridge_hop, overhead, contention_of_four, contention_of_eight };

constexpr LawConstant nccl_constants[] = {
    {"launch_kiloclocks", 11, 1, 100},  // as kernels' launch floors: what a kernel does before its first send
    {"hop_us", 1, 0.05, 10},
    {"bridge_hop_us", 1.4, 0.05, 10},  // PCIe
    {"overhead", 1, 0.2, 5},           // times the curve
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
    const bool is_all_reduce = call.operation == "all_reduce";
    LawParts parts{.curve = call.operation, .fallback = call.operation, .curve_scale = constants[overhead]};
    double bytes = message_wire_bytes(call, is_all_reduce);
    // NCCL reduces in the switch when all eight devices of a node take part; with fewer it keeps its rings. A device
    // then sends its buffer up once and gets its share of the sums.
    if (is_all_reduce && system.reduces_in_switch && call.ranks >= 8) {
      parts.curve = "all_reduce in switch";
      bytes = call.bytes * (1 + 1 / static_cast<double>(call.ranks));
    }
    parts.wire_seconds = bytes / system.link_rate;
    if (is_shared(call, system)) {
      parts.wire_seconds *= constants[call.ranks <= 4 ? contention_of_four : contention_of_eight];
    }
    const double step_us = constants[system.is_host_link ? bridge_hop : hop];
    parts.apart = 1e3 * constants[launch] / system.clock + 1e-6 * steps_of(call) * step_us + parts.wire_seconds;
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
    if (call.bytes <= 65536) return {launch, hop, bridge_hop, overhead};
    if (!is_shared(call, system)) return {};
    return {contention_of_four, contention_of_eight};
  }
};

}  // namespace
}  // namespace nccl

const CommunicationLaw& nccl_law() {
  static const nccl::NcclLaw law;
  return law;
}

}  // namespace foretoken
