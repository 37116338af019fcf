// The collectives of a step among ranks that have places on a machine -> seconds, and which links carry them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "hardware/cluster.h"
#include "model/shapes.h"
#include "model/step.h"
#include "network/calibration/communication_predictor.h"
#include "network/collective_estimate.h"
#include "network/rank_places.h"
#include "network/ring_link.h"

namespace foretoken {

// One call of a collective in a step.
struct StepCollective {
  CollectiveShape shape;
  std::string_view kernel = {};       // the stack's own all-reduce kernel; empty = NCCL's
  const MoeShape* experts = nullptr;  // of the layer whose tokens travel, where the step has one
  int64_t stage = 0;                  // of the pipeline
};

// What an exchange of tokens holds of its device while other kernels run beside it.
struct ExchangeUse {
  bool low_latency = false;  // sends, lets go of the device until all has arrived, and takes it in
  double processors = 0;     // of the device, all the time; 0 with low_latency
  double on_device = 0;      // with low_latency: seconds of sending and taking in
};

// What a device sends over links of one kind.
struct LinkTraffic {
  std::string link;  // "NVLink", "PCIe", "InfiniBand NDR"
  bool between_nodes = false;
  double bandwidth = 0;  // bytes/s out of a device, one direction, by the sheet or as given
  double bytes = 0;
  double seconds = 0;  // in which the step waits for them
};

// A machine before anybody says which ranks run on it. The functions are called when a plan needs them.
struct NetworkFacts {
  Device device;
  std::optional<Node> node = {};        // with the links that were given; nothing = not known
  bool has_sweep_of_node = false;       // the node was named, and the sweeps are of this very box
  std::optional<Cluster> cluster = {};  // that was named
  LinkSpec link = {};
  std::vector<ParallelAxis> order = {};                         // empty = as engines do
  std::shared_ptr<const CommunicationPredictor> measured = {};  // null = start-up and wire time from the sheet
  std::function<Cluster(const Node&)> usual_cluster = {};       // of such nodes
  std::function<std::shared_ptr<const CommunicationPredictor>(const Node&)> expert_kernels = {};
};

class RankNetwork {
 public:
  // InputError where the cluster that was named has fewer devices than the plan has ranks.
  RankNetwork(std::shared_ptr<const NetworkFacts> facts, const ParallelPlan& plan);
  // The same machine under other ranks.
  std::shared_ptr<const RankNetwork> for_plan(const ParallelPlan& plan) const;

  // Inside a node: as measured, or a ring over PCIe or the link that was given. Between nodes: as CollectiveModel, all
  // ranks of a node at once. Tokens that go to the ranks of their experts alone travel by DeepEP's kernels: the rank
  // that gets the most of them decides.
  Estimate seconds(const StepCollective& call) const;
  ExchangeUse exchange_use(const StepCollective& call) const;
  // The same call by link, without its seconds; the link that it waits for comes last.
  std::vector<LinkTraffic> traffic(const StepCollective& call) const;

  // What was assumed of the links, each a sentence.
  const std::vector<std::string>& notes() const { return notes_; }
  const CommunicationPredictor* measured() const { return facts_->measured.get(); }

 private:
  bool leaves_node(const StepCollective& call) const;
  bool is_bridged(const StepCollective& call) const;
  Estimate inside(const StepCollective& call) const;
  bool travels_by_deepep(const StepCollective& call, int64_t nodes) const;
  std::optional<Estimate> expert_seconds(const StepCollective& call, int64_t ranks, int64_t nodes, double tokens) const;
  RingRange ring_of(int64_t ranks) const;
  bool runs_rings() const;
  LinkTraffic node_link() const;
  void use_cluster(int64_t ranks);
  void note_pcie();

  std::shared_ptr<const NetworkFacts> facts_;
  RankPlaces places_;
  std::optional<Cluster> cluster_;         // where the ranks need more than a node
  std::optional<CollectiveModel> across_;  // on it
  std::shared_ptr<const CommunicationPredictor> expert_kernels_;
  std::vector<std::string> notes_;
};

// As the network says; without one, start-up and wire time from the device's sheet.
Estimate step_collective_seconds(const StepCollective& call, const Device& device, const RankNetwork* network);

// The experts whose tokens travel in these operators; null where there are none.
const MoeShape* traveling_experts(std::span<const Operator> operators);

}  // namespace foretoken
