// How a communication library moves one message: what it adds to the bytes, and what each message costs besides.
#pragma once

#include <cstdint>
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
  Seconds post;                        // to start one of many sends to other nodes
  double near_wire = 1, far_wire = 1;  // bytes on the link for each byte of data
};

// The steps of a tree cost more than those of a ring; reductions in a switch and aggregated trees are of their own
// kind.
enum class StepKind { ring, tree, in_switch, in_switch_tree, pat };

// What the constants of a message depend on besides its protocol and step.
struct MessageWay {
  bool nvlink = false;
  int64_t ranks = 1, nodes = 1;
  bool all_reduces = false;
  bool between_nodes() const { return nodes > 1; }
};

// The constants of NCCL's cost model (NCCL 2.28.9, src/graph/tuning.cc: baseLat, hwLat): start-up, and latency of one
// step over NVLink or PCIe and over the network. NCCL takes 20 GB/s of a 25 GB/s NVLink to be usable, and 0.85 of that
// by reductions in the switch (nvlsEfficiency).
MessageCosts message_costs(Protocol protocol, StepKind step, const MessageWay& way);

// How fast a collective between nodes is at most, whatever its links: bytes/s of a rank (nccl-tests' bus bandwidth).
// Nothing where the links alone decide. (llMaxBw.)
double most_bus_bandwidth(Protocol protocol, const MessageWay& way);

// The share of its rate that an all-reduce of so many bytes along trees reaches between nodes: in the middle, chunks
// are too few to fill all levels. (treeCorrectionFactor.)
double tree_share(Protocol protocol, StepKind step, const MessageWay& way, double bytes);

}  // namespace foretoken
