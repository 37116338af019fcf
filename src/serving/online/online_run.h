// A serving run whose requests are not known before they come: engines at the pace of whoever calls.
#pragma once

#include "serving/simulation/routed_replicas.h"

namespace foretoken {

// The caller says what time it is; time never goes back. What happens, and when, is what simulate() gives for the same
// arrivals (without repeat_decodes: every step is decided when the one before it ends).
class OnlineRun {
 public:
  // Of the configuration as RoutedReplicas, without tiers. The observer is told of every step that ends.
  OnlineRun(SimulationConfig config, RunObserver& observer);

  // Everything before `now` happens. Not what is due at `now` itself: a request may still arrive at this moment.
  void advance(Picoseconds now);
  // Its arrival is `now`. The observer hears at once of one that is rejected. `body` as RoutedReplicas::arrive.
  void submit(Request&& request, Picoseconds now, int64_t body = -1);
  // Its client has gone. False when it has ended.
  bool cancel(int64_t id, Picoseconds now);
  // As after a restart; false while an engine has requests.
  bool forget_prefixes(Picoseconds now);

  // end_of_time while all are idle.
  Picoseconds next_event() const { return site_.engines().next_step(); }
  const std::deque<Replica>& replicas() const { return site_.engines().replicas(); }

 private:
  SimulationConfig config_;
  RequestEnds nobody_;  // waits for ends: the observer knows
  RoutedReplicas site_;
  Picoseconds now_ = 0;  // of the last event or call
};

}  // namespace foretoken
