// The time of a collective by formula: messages one behind the other, then bytes over the busiest link.
#pragma once

#include <span>
#include <string>

#include "hardware/cluster.h"
#include "network/algorithms/algorithm.h"
#include "network/flow/routed_plan.h"
#include "network/transfer/protocol.h"

namespace foretoken {

// What a group may use of a cluster, one direction.
struct GroupRates {
  BytesPerSecond device;      // a device into the fabric of its node
  BytesPerSecond pair;        // between two devices of a mesh; 0 where there is a switch
  BytesPerSecond card;        // the cards of one device, or its part of one when all members that share it send
  BytesPerSecond whole_card;  // the same when it sends alone
  BytesPerSecond spine;       // each member's part of its leaf switch's links upwards
  Seconds near_latency, leaf_latency, spine_latency;  // of the links alone; 0 where the sheet gives none
};

GroupRates group_rates(const Cluster& cluster, const GroupShape& shape);

struct ClosedForm {
  Seconds start;
  Seconds latency;
  Seconds wire;
  std::string busiest;  // what takes the longest: "links of the node", "network cards", "posting of messages", ...;
                        // empty when nothing moves

  Seconds total() const { return start + latency + wire; }
};

// No rank is looked at: the same time for a group of any size.
ClosedForm closed_form(std::span<const StageLoad> loads, double bytes, const GroupRates& rates,
                       const MessageCosts& costs);

// Of any plan on any topology: the busiest link of every stage.
ClosedForm closed_form(const RoutedPlan& plan, const Topology& topology);

}  // namespace foretoken
