// Where the ranks of a plan sit, and what lies between them, as users say it; and the devices of each group of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/shapes.h"
#include "model/step.h"
#include "network/transfer/process_group.h"

namespace foretoken {

// What is known of the links of a host and overrides its node's file.
struct LinkSpec {
  std::optional<BytesPerSecond> bandwidth = {};      // between two devices of a node, as a ring of them reaches it
  std::optional<Seconds> latency = {};               // of one hop
  int pcie_generation = 0;                           // devices talk over PCIe x16 of this generation; 0 = as the node
  std::optional<bool> peer_access = {};              // over PCIe: devices write to each other
  bool nvlink_pairs = false;                         // devices 2i and 2i+1 have NVLink bridges, others PCIe
  int nics = 0;                                      // network cards of a node; 0 = as the node
  std::optional<BytesPerSecond> nic_bandwidth = {};  // of each, one direction

  bool is_given() const {
    return bandwidth || latency || pcie_generation > 0 || peer_access || nvlink_pairs || nics > 0 || nic_bandwidth;
  }
};

struct PlacementSpec {
  std::string node = {}, cluster = {};  // names or files; empty = the node that the device usually sits in
  LinkSpec link = {};
  std::vector<ParallelAxis> order = {};  // of ranks, innermost first; empty = engine_rank_order

  bool is_given() const { return !node.empty() || !cluster.empty() || link.is_given() || !order.empty(); }
};

// The same for equal placements, and for no others.
std::string placement_key(const PlacementSpec& placement);

// vLLM and SGLang number ranks that way (vLLM, distributed/parallel_state.py); Megatron-LM has pipeline stages
// outermost
// (--rank-order tp-cp-ep-dp-pp). Experts have no axis of their own: they lie over tensor, context and data ranks.
inline constexpr ParallelAxis engine_rank_order[] = {ParallelAxis::tensor, ParallelAxis::context,
                                                     ParallelAxis::pipeline, ParallelAxis::data};
inline constexpr ParallelAxis training_rank_order[] = {ParallelAxis::tensor, ParallelAxis::context, ParallelAxis::data,
                                                       ParallelAxis::pipeline};

// Where nobody gives another one.
std::span<const ParallelAxis> usual_rank_order(StepPhase phase);

// "tp-cp-pp-dp" -> axes; those left out come after. InputError names `flag`.
std::vector<ParallelAxis> parse_rank_order(const std::string& flag, const std::string& text);

// Where a rank stands on each axis.
struct RankPosition {
  int64_t tensor = 0, context = 0, data = 0, stage = 0;
  bool operator==(const RankPosition&) const = default;
};

// Ranks are numbered along the axes and sit on devices 0, 1, ... in that order.
class RankPlaces {
 public:
  RankPlaces(const ParallelPlan& plan, std::span<const ParallelAxis> order);

  // The first group of this collective in pipeline stage `stage`. A send goes to the next stage, or from the last one
  // back.
  ProcessGroup group(const CollectiveShape& shape, int64_t stage) const;
  // The devices of all ranks of a pipeline stage.
  std::vector<int64_t> ranks_of_stage(int64_t stage) const;

  RankPosition position_of(int64_t rank) const;
  int64_t rank_at(const RankPosition& position) const;

 private:
  ParallelPlan plan_;
  int64_t tensor_step_ = 1, context_step_ = 1, pipeline_step_ = 1, data_step_ = 1;
};

}  // namespace foretoken
