// What a collective algorithm is: who sends which part of the buffer to whom, and the same as loads for a formula.
// Members are numbered by place (GroupLayout). The list of algorithms is list.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/shapes.h"
#include "network/transfer/process_group.h"
#include "network/transfer/protocol.h"

namespace foretoken {

// `count` blocks of the buffer from one place to another: first, first + step, ... modulo the number of blocks.
struct BlockTransfer {
  int32_t from = 0;
  int32_t to = 0;
  int64_t first = 0;
  int64_t count = 0;
  int64_t step = 1;
  bool in_switch = false;  // reduced and copied by the switch: what anyone sends reaches all
};

// Transfers that go on at the same time. A member passes a block on once all that it gets of that block in this stage
// has come (pipelining). `messages` of them lie one behind the other; `near_messages` more do that never leave a node.
struct BlockStage {
  std::vector<BlockTransfer> transfers;
  int64_t messages = 1;
  int64_t near_messages = 0;
  int64_t posts = 0;     // sends to other nodes that a member starts one after another
  bool reduces = false;  // what comes is added to what is there, else takes its place
};

// The buffer is cut into equal blocks. Where members own parts of it (all-gather, reduce-scatter, gather, scatter),
// blocks are a multiple of the members and place p owns the p-th share of them; in an all-to-all of n members, block
// p * n + q goes from p to q, and all buffers together are cut.
struct BlockPlan {
  int64_t blocks = 1;
  std::vector<BlockStage> stages;
};

// The farthest that messages of a stage go.
enum class Reach { node, leaf, spine };

// What a stage puts on the busiest link of each kind, as shares of the collective's bytes. Both directions are alike or
// the busier one counts.
struct StageLoad {
  double messages = 1;
  double near_messages = 0;
  double posts = 0;  // as in BlockStage
  Reach reach = Reach::node;
  double device = 0;   // between a device and the fabric of its node
  double pair = 0;     // between two devices of a node, where each pair has its own link
  double card = 0;     // through the network cards of one device
  double spine = 0;    // from one device through the spine, on average over the members below a leaf switch
  bool alone = false;  // only one member's card carries that much: those that share it do not add up
};

struct CollectiveAlgorithm {
  std::string_view name;
  std::string_view summary;
  // Why this collective on this group is not for it; empty when it is.
  std::string (*unsuitable)(CollectiveKind kind, const GroupShape& shape);
  // Place `root` has or gets the data of broadcast, reduce, gather and scatter; send_recv goes from it to the next.
  BlockPlan (*plan)(CollectiveKind kind, const GroupLayout& layout, int32_t root);
  // For a group of any size in the same time (trees and doubling: its logarithm).
  std::vector<StageLoad> (*loads)(CollectiveKind kind, const GroupShape& shape);
  // Whether NCCL would consider it (NCCL 2.26, src/graph/tuning.cc and src/enqueue.cc).
  bool (*nccl_considers)(CollectiveKind kind, const GroupShape& shape);
  StepKind steps = StepKind::ring;
  bool sends_and_receives = false;     // NCCL has no kernel of its own for it
  bool simple_only = false;            // NCCL has it with the protocol simple alone
  bool needs_reducing_switch = false;  // NVSwitch of Hopper or later
};

std::span<const CollectiveAlgorithm> collective_algorithms();
std::vector<std::string> collective_algorithm_names();
// InputError with the nearest name for one nobody knows.
const CollectiveAlgorithm& collective_algorithm(std::string_view name);

}  // namespace foretoken
