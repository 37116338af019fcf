// How a communication library moves one message: what it adds to the bytes, and what each message costs besides.
#pragma once

#include <string_view>

#include "base/units.h"

namespace foretoken {

// ll: a flag with every 4 bytes. ll128: a flag with every 120 bytes, over NVLink. simple: flags between large chunks.
// ideal: nothing beyond the links themselves.
enum class Protocol { ll, ll128, simple, ideal };
inline constexpr std::string_view protocol_names[] = {"ll", "ll128", "simple", "ideal"};
std::string_view protocol_name(Protocol protocol);

// Near: inside a node. Far: between nodes.
struct MessageCosts {
  Seconds start;
  Seconds near_message, far_message;
  double near_wire = 1, far_wire = 1;  // bytes on the link for each byte of data
};

// The steps of a tree cost more than those of a ring, those of an in-switch reduction are of their own kind.
enum class StepKind { ring, tree, in_switch };

// The constants of NCCL's cost model (NCCL 2.26, src/graph/tuning.cc: baseLat, hwLat): start-up, and latency of one
// step over NVLink or PCIe and over the network. NCCL takes 20 GB/s of a 25 GB/s NVLink to be usable, and 0.85 of that
// by reductions in the switch (nvlsEfficiency).
MessageCosts message_costs(Protocol protocol, StepKind step, bool nvlink);

}  // namespace foretoken
