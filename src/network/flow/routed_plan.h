// A transfer plan laid on the links of a topology.
#pragma once

#include <vector>

#include "base/units.h"
#include "network/flow/fair_sharing.h"
#include "network/topology/router.h"
#include "network/transfer/transfer_plan.h"

namespace foretoken {

struct RoutedStage {
  Seconds latency;              // of all its messages on the slowest path
  double largest_transfer = 0;  // bytes; 0 when nothing moves between devices
  // By link, ascending: bytes on the link for each byte of the largest transfer.
  std::vector<LinkLoad> loads;
};

struct RoutedPlan {
  Seconds start;
  std::vector<RoutedStage> stages;
};

class PlanRouter {
 public:
  // The topology must outlive it.
  PlanRouter(const Topology& topology, LinkRouting routing);

  // `flow` tells apart plans that ECMP may send along different paths. InputError for a transfer of devices that are
  // not there or have no path between them, or a size or time that is none.
  RoutedPlan route(const TransferPlan& plan, uint64_t flow);

 private:
  RoutedStage route(const Stage& stage, uint64_t flow);
  void lay(const Transfer& transfer);

  const Topology& topology_;
  Router router_;
  std::vector<RouteLink> route_;
  struct Carried {
    double sum = 0;      // bytes of transfers on their own
    double largest = 0;  // of those that the switch joins
  };
  std::vector<Carried> bytes_on_;  // by link, during one stage
  std::vector<LinkIndex> used_;
};

}  // namespace foretoken
