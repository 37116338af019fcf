// Replicas behind one router, event by event: what simulate() runs to its end, and online/ at the pace of a clock.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "serving/requests/next_event.h"
#include "serving/simulation/placement.h"
#include "serving/simulation/replica.h"
#include "serving/simulation/simulation_config.h"

namespace foretoken {

class RoutedReplicas {
 public:
  // Of the configuration: replicas, router, seed, bound, tiers, repeat_decodes.
  RoutedReplicas(const SimulationConfig& config, RunObserver& observer);

  Picoseconds now() const { return now_; }  // of the last event or arrival
  // When something changes next; end_of_time while all are idle.
  Picoseconds next_event() const { return events_.when(); }
  // Handles it.
  void advance();
  // `when` lies between now and the next event. Requests with the same `body` came in one message, one after the
  // other: they go to one server, and reach its engine together; -1 = alone.
  void arrive(Request&& request, Picoseconds when, int64_t body = -1);
  // As Replica::cancel, wherever it is.
  bool cancel(int64_t id);
  // Requests that ended since the last call, in order.
  std::vector<Replica::Ended> take_ended();

  const std::deque<Replica>& replicas() const { return replicas_; }
  // What was cached is forgotten, as if the engines started again; false, and nothing happens, while one has requests.
  bool forget_prefixes();
  // When nothing is left to do.
  SimulationTotals final_totals() const;

 private:
  void note(size_t index);

  std::optional<KvTiers> tiers_;
  NextEvent events_;
  std::deque<Replica> replicas_;
  Placement placement_;
  bool ranks_of_one_server_;
  int64_t last_body_ = -1;
  size_t last_chosen_ = 0;
  std::vector<Replica::Ended> ended_;
  Picoseconds now_ = 0;
};

}  // namespace foretoken
