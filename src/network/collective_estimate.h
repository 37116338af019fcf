// One collective on a cluster or any topology -> Estimate of seconds, at the fidelity asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "hardware/cluster.h"
#include "model/shapes.h"
#include "network/algorithm_choice.h"
#include "network/calibration/communication_predictor.h"
#include "network/flow/flow_simulator.h"
#include "network/pair_bytes.h"
#include "network/topology/topology.h"
#include "network/transfer/process_group.h"
#include "network/transfer/transfer_plan.h"

namespace foretoken {

// closed: by formula. flow: every transfer on the links of the topology, shared fairly with those of other groups.
enum class Fidelity { closed, flow };
inline constexpr std::string_view fidelity_names[] = {"closed", "flow"};

struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;  // as in CollectiveShape
  ProcessGroup group = ProcessGroup::strided(0, 1);
  std::optional<PairBytes> pairs;  // all_to_all: instead of equal parts of `bytes`; needs CollectiveOptions::uneven
  int64_t root = 0;  // rank that has or gets the data of broadcast, reduce, gather, scatter; that sends, in send_recv
  ChoiceRequest choice;
  // Groups like this one, side by side, that do the same at the same time; more than one at flow level only.
  int64_t concurrent = 1;
  // Of such groups, how many share the network cards that this one uses; closed form only.
  double groups_per_card = 1;
  std::string_view kernel = {};  // an engine's own all-reduce (engine_kernels), inside a node; empty = the library's
};

// What one link carried, of all groups that ran at once.
struct LinkReport {
  std::string from, to;
  BytesPerSecond bandwidth;
  double bytes = 0;
  double use = 0;  // of what it could have carried meanwhile, 0 to 1
};

struct CollectiveEstimate {
  Estimate seconds;
  double algorithm_bandwidth = 0;  // bytes/s: bytes over time
  double bus_bandwidth = 0;        // bytes/s: what every rank must send over time (nccl-tests)
  Choice choice;
  // "measured", "sibling", "cross" (collectives that were measured), "ring" (over PCIe), "formula", "flow"
  std::string source;
  std::string basis;              // what value and interval rest on, in words
  std::vector<LinkReport> links;  // busiest first; where asked for
  std::vector<LinkUse> link_use;  // by time, links of topology(); where asked for
};

struct CollectiveOptions {
  Fidelity fidelity = Fidelity::closed;
  LinkRouting routing = LinkRouting::ecmp;
  bool reports_links = false;
  bool records_link_use = false;  // at flow level
  bool uneven = false;            // there will be requests with pairs: the formula then looks at every link
  // Collectives measured inside a node, for the closed form; null = none. Must outlive the model.
  const CommunicationPredictor* measured = nullptr;
};

// A machine, and collectives on it. Safe to use from many threads.
class CollectiveModel {
 public:
  // A node alone is a cluster of one.
  CollectiveModel(Cluster cluster, CollectiveOptions options);
  // Links only: no software, no protocol unless one is asked for. `domain` devices in a row are a fast domain, on which
  // hierarchical algorithms build; 0 = all of them are.
  CollectiveModel(Topology topology, std::string name, int64_t domain, CollectiveOptions options);

  // InputError for ranks that the machine does not have, an algorithm that does not suit, or bytes that are none.
  CollectiveEstimate estimate(const CollectiveRequest& request) const;

  // What the algorithm that estimate() chooses sends, to be run beside others on topology(). With fidelity flow, or on
  // a topology.
  TransferPlan plan(const CollectiveRequest& request) const;
  const Topology& topology() const { return topology_.value(); }

  const std::string& name() const { return name_; }
  int64_t device_count() const;
  int64_t nodes_of(const ProcessGroup& group) const;  // fast domains that have members
  // Of a collective that all devices of the group's nodes run at the same time, each in its own group (shared_cards.h).
  double groups_per_card(const ProcessGroup& group) const;

 private:
  struct Group;  // of a request, as this machine holds it
  struct NodeTime {
    Estimate seconds;
    std::string source, basis;
  };
  void check(const CollectiveRequest& request) const;
  void check_pairs(const CollectiveRequest& request) const;
  Group group_of(const CollectiveRequest& request) const;
  Choice choice_for(const CollectiveRequest& request, const Group& group) const;
  // The messages and the bytes alone, as time_on_links().
  TransferPlan bare_plan_of(const CollectiveRequest& request, const Group& group,
                            const AlgorithmAndProtocol& candidate) const;
  TransferPlan plan_of(const CollectiveRequest& request, const Group& group,
                       const AlgorithmAndProtocol& candidate) const;
  MessageWay way_of(const CollectiveRequest& request, const Group& group) const;
  MessageCosts costs_of(const CollectiveRequest& request, const Group& group,
                        const AlgorithmAndProtocol& candidate) const;
  // With what a library's own limits, and real clusters, add between nodes to the time on the links.
  ClosedForm as_run(const CollectiveRequest& request, const Group& group, const AlgorithmAndProtocol& candidate,
                    ClosedForm on_links) const;
  ClosedForm closed_form_of(const CollectiveRequest& request, const Group& group,
                            const AlgorithmAndProtocol& candidate) const;
  // By formula.
  ClosedForm time_on_links(const CollectiveRequest& request, const Group& group,
                           const AlgorithmAndProtocol& candidate) const;
  // Hands over the plan of each group that runs at the same time, one at a time: they can be large.
  void for_each_plan(const CollectiveRequest& request, const AlgorithmAndProtocol& candidate,
                     const std::function<void(const TransferPlan&)>& take) const;
  Seconds flow_time(const CollectiveRequest& request, const AlgorithmAndProtocol& candidate,
                    std::vector<LinkUse>& link_use) const;
  std::vector<LinkReport> link_reports(const CollectiveRequest& request, const AlgorithmAndProtocol& candidate,
                                       Seconds time) const;
  bool is_as_nccl(const CollectiveRequest& request) const;  // as NCCL itself chooses, by formula
  std::optional<CommunicationTime> measured_time(const CollectiveRequest& request, const Group& group) const;
  std::optional<NodeTime> node_time(const CollectiveRequest& request, const Group& group) const;
  std::optional<NodeTime> part_inside_node(const CollectiveRequest& request, const Group& group) const;
  // What no algorithm on offer can be faster than.
  Seconds least_on_links(const CollectiveRequest& request, const Group& group) const;
  Estimate with_interval(Seconds time, const Choice& choice, Seconds least, const Group& group,
                         std::string& basis) const;

  std::string name_;
  CollectiveOptions options_;
  std::optional<Cluster> cluster_;
  std::optional<Topology> topology_;  // of a cluster: where transfers are laid on links
  int64_t domain_ = 0;
  ChoiceLimits limits_;
};

// What a time of a communication library ("NCCL") rests on, in words.
std::string measured_basis(std::string_view library, const CommunicationTime& time);

// The cluster that is this node alone.
Cluster cluster_of(const Node& node);

}  // namespace foretoken
