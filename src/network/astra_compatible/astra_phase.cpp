#include "network/astra_compatible/astra_phase.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/units.h"

namespace foretoken {
namespace {

// The rules are those found by fitting ASTRA-sim's output to the nanosecond. Every delay is cut to whole nanoseconds.
class Phase {
 public:
  Phase(CollectiveKind kind, const AstraDimension& dimension, int64_t chunk_bytes, const AstraEndpoint& endpoint)
      : kind_(kind), dimension_(dimension), npus_(dimension.npus), chunk_(chunk_bytes), endpoint_(endpoint) {}

  int64_t ring() const {
    const bool reduces = kind_ == CollectiveKind::all_reduce || kind_ == CollectiveKind::reduce_scatter;
    int64_t steps = npus_ - 1;
    if (kind_ == CollectiveKind::all_reduce) steps = 2 * (npus_ - 1);
    if (kind_ == CollectiveKind::all_to_all) steps = npus_ * (npus_ - 1) / 2;
    const int64_t reductions = reduces ? npus_ - 1 : 0;
    return endpoint_.delay_ns + steps * (message_ns(message(), 1) + endpoint_.delay_ns) +
           reductions * reduction_ns(message());
  }

  int64_t direct() const {
    const int64_t arrival = direct_arrival();
    if (kind_ == CollectiveKind::all_reduce) return 3 * endpoint_.delay_ns + direct_release(arrival) + arrival;
    const int64_t reduction = kind_ == CollectiveKind::reduce_scatter ? reduction_ns(message()) : 0;
    return 2 * endpoint_.delay_ns + arrival + reduction;
  }

  // Distances 1, 2, 4, ... with halves, quarters, ...; gathering walks back. One reduction fewer than there are steps,
  // each of the next step's size.
  int64_t halving_doubling() const {
    const int steps = std::countr_zero(static_cast<uint64_t>(npus_));  // a power of two
    int64_t time = endpoint_.delay_ns;
    if (kind_ == CollectiveKind::all_reduce || kind_ == CollectiveKind::reduce_scatter) {
      int64_t bytes = chunk_;
      for (int step = 0; step < steps; ++step) {
        bytes /= 2;
        time += message_ns(bytes, int64_t{1} << step) + endpoint_.delay_ns;
        if (step < steps - 1) time += reduction_ns(bytes / 2);
      }
    }
    if (kind_ == CollectiveKind::all_reduce || kind_ == CollectiveKind::all_gather) {
      int64_t bytes = kind_ == CollectiveKind::all_gather ? chunk_ : chunk_ / npus_;
      for (int step = steps - 1; step >= 0; --step, bytes *= 2) {
        time += message_ns(bytes, int64_t{1} << step) + endpoint_.delay_ns;
      }
    }
    return time;
  }

 private:
  int64_t message() const { return kind_ == CollectiveKind::all_gather ? chunk_ : chunk_ / npus_; }

  int64_t hops(int64_t distance) const {
    switch (dimension_.topology) {
      case AstraTopology::ring:
        return std::min(distance, npus_ - distance);
      case AstraTopology::network_switch:
        return 2;
      case AstraTopology::fully_connected:
        return 1;
    }
    throw InternalError("every topology of ASTRA-sim has hops");
  }

  double wire_ns(int64_t bytes) const {
    return static_cast<double>(bytes) / (dimension_.bandwidth_gib_per_s * gibi / giga);
  }

  // Unaware of congestion: latency per hop, bytes once. Aware: store and forward.
  int64_t message_ns(int64_t bytes, int64_t distance) const {
    const auto count = static_cast<double>(hops(distance));
    if (!endpoint_.congestion_aware) return static_cast<int64_t>(count * dimension_.latency_ns + wire_ns(bytes));
    return hops(distance) * static_cast<int64_t>(dimension_.latency_ns + wire_ns(bytes));
  }

  // Two reads and a write.
  int64_t reduction_ns(int64_t bytes) const {
    return 3 * static_cast<int64_t>(static_cast<double>(bytes) / endpoint_.local_memory_gb_per_s);
  }

  // The last of the n-1 messages that reach each NPU at once. On a switch they queue on the way out.
  int64_t direct_arrival() const {
    if (endpoint_.congestion_aware && dimension_.topology == AstraTopology::network_switch) {
      const double wire = wire_ns(message());
      return (npus_ - 2) * static_cast<int64_t>(wire) + 2 * static_cast<int64_t>(dimension_.latency_ns + wire);
    }
    return message_ns(message(), npus_ / 2);
  }

  // When the second half of a direct all-reduce may start: at the first reduction to end after all messages have come.
  int64_t direct_release(int64_t arrival) const {
    const int64_t reduction = reduction_ns(message());
    int64_t release = arrival + reduction;
    if (dimension_.topology != AstraTopology::ring) return release;
    for (int64_t distance = npus_ / 2; distance >= 1; --distance) {
      const int64_t reduced = message_ns(message(), distance) + reduction;
      if (reduced < arrival) break;
      release = reduced;
    }
    return release;
  }

  CollectiveKind kind_;
  const AstraDimension& dimension_;
  int64_t npus_;
  int64_t chunk_;
  const AstraEndpoint& endpoint_;
};

}  // namespace

AstraTime astra_phase_time(CollectiveKind kind, const AstraDimension& dimension, int64_t chunk_bytes,
                           const AstraEndpoint& endpoint) {
  if (dimension.npus == 1) return {.nanoseconds = 0};
  const Phase phase(kind, dimension, chunk_bytes, endpoint);
  const bool congested_ring = endpoint.congestion_aware && dimension.topology == AstraTopology::ring;
  switch (dimension.algorithm) {
    case AstraAlgorithm::ring:
      return {.nanoseconds = phase.ring()};
    case AstraAlgorithm::direct:
      if (congested_ring) return {.no_closed_form = "direct messages of many lengths share the links of a ring"};
      return {.nanoseconds = phase.direct()};
    case AstraAlgorithm::halving_doubling:
      if (congested_ring) return {.no_closed_form = "halving-doubling shares the links of a ring"};
      if (kind == CollectiveKind::all_to_all) return {.no_closed_form = "halving-doubling has no all-to-all"};
      return {.nanoseconds = phase.halving_doubling()};
    case AstraAlgorithm::double_binary_tree:
      return {.no_closed_form = "a double binary tree depends on the order of events"};
  }
  throw InternalError("every algorithm of ASTRA-sim is told apart");
}

}  // namespace foretoken
