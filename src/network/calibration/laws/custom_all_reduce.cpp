// All-reduce kernels of the serving engines: one-shot (everybody reads everybody's buffer) for small messages, two-shot
// (reduce-scatter, all-gather) above, NCCL above the kernel's limit. Inside a CUDA graph: the kernel alone. Launched
// one by one ("_eager"): the host's time for a call, until the device needs longer than that.
#include <cmath>
#include <string>
#include <string_view>

#include "network/calibration/laws/list.h"

namespace foretoken {
namespace custom_all_reduce {
namespace {

enum : size_t { start, per_rank, host, bridge_step, contention_of_four, contention_of_eight };

constexpr LawConstant custom_constants[] = {
    {"start_us", 4.5, 0.5, 60},
    {"per_rank_us", 0.1, 0.001, 5},
    {"host_us", 25, 5, 400},
    // Without NVLink the kernels serve two devices only; from three on NCCL's ring runs, a step at a time.
    {"bridge_step_us", 1.5, 0.1, 10},
    {"contention_of_four", 2, 0.5, 40},
    {"contention_of_eight", 4, 0.5, 100},
};

bool is_eager(const CommunicationCall& call) {
  return call.operation.ends_with("_eager");
}
bool is_shared(const CommunicationCall& call, const SystemTraits& system) {
  return system.is_host_link && call.ranks > 2;
}

std::string_view curve_of(const CommunicationCall& call, AllReduceShots shots) {
  static const std::string of_vllm = with_shots("vllm", AllReduceShots::two);
  static const std::string of_sglang = with_shots("sglang", AllReduceShots::two);
  const std::string_view kernel = std::string_view(call.operation).substr(0, call.operation.find('_'));
  if (shots != AllReduceShots::two) return kernel;
  return kernel == "vllm" ? of_vllm : of_sglang;
}

class CustomAllReduceLaw : public CommunicationLaw {
 public:
  std::span<const LawConstant> constants() const override { return custom_constants; }

  LawParts parts(const CommunicationCall& call, const SystemTraits& system,
                 std::span<const double> constants) const override {
    const auto ranks = static_cast<double>(call.ranks);
    const AllReduceShots shots = is_shared(call, system) ? AllReduceShots::none : all_reduce_shots(call);
    LawParts parts{.apart = 1e-6 * (constants[start] + (ranks - 2) * constants[per_rank]),
                   .curve = curve_of(call, shots),
                   .fallback = "vllm",
                   .wire_seconds = message_wire_bytes(call, true) / system.link_rate,
                   .at_least = is_eager(call) ? 1e-6 * constants[host] : 0};
    if (is_shared(call, system)) {
      parts.apart = 1e-6 * (constants[start] + 2 * (ranks - 1) * constants[bridge_step]);
      parts.wire_seconds *= constants[call.ranks <= 4 ? contention_of_four : contention_of_eight];
    }
    const bool reads_at_once = shots == AllReduceShots::one;
    parts.apart += reads_at_once ? (ranks - 1) * call.bytes / system.link_rate : parts.wire_seconds;
    return parts;
  }

  bool wire_is_known(const CommunicationCall& call, const SystemTraits& system) const override {
    return !is_shared(call, system);
  }
  bool teaches_curve(const CommunicationCall& call, const SystemTraits& system) const override {
    return !is_eager(call) && !is_shared(call, system);
  }
  bool is_floor(const CommunicationCall& call) const override { return call.bytes <= 8192; }

  std::vector<size_t> told_by(const CommunicationCall& call, const SystemTraits& system) const override {
    if (call.bytes <= 65536) return is_eager(call) ? std::vector<size_t>{host} : std::vector<size_t>{start, per_rank};
    if (!is_shared(call, system)) return {};
    return {contention_of_four, contention_of_eight};
  }
};

}  // namespace
}  // namespace custom_all_reduce

const CommunicationLaw& custom_all_reduce_law() {
  static const custom_all_reduce::CustomAllReduceLaw law;
  return law;
}

}  // namespace foretoken
