// Replicas behind one router: what simulate() runs to its end, and online/ at the pace of a clock.
#pragma once

#include <deque>

#include "serving/simulation/engines.h"
#include "serving/simulation/placement.h"
#include "serving/simulation/site.h"

namespace foretoken {

class RoutedReplicas final : public Site, private EngineListener {
 public:
  // Of the configuration: replicas, router, seed, bound, tiers, repeat_decodes. It outlives this, as the others do.
  RoutedReplicas(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer);

  void join(EventLoop& loop) override { loop.add(engines_); }
  void accept(Request&& request, Picoseconds now) override { arrive(std::move(request), now); }
  // Requests with the same `body` came in one message, one after the other: they go to one server, and reach its
  // engine together; -1 = alone.
  void arrive(Request&& request, Picoseconds now, int64_t body = -1);
  // As Replica::cancel, wherever it is.
  bool cancel(int64_t id);
  SimulationTotals final_totals(Picoseconds now) override;

  Engines& engines() { return engines_; }
  const Engines& engines() const { return engines_; }
  // What was cached is forgotten, as if the engines started again; false, and nothing happens, while one has requests.
  bool forget_prefixes(Picoseconds now);

 private:
  void changed(size_t replica, Picoseconds now) override;
  void note(size_t index);

  RequestEnds* ends_;
  Engines engines_;
  Placement placement_;
  bool ranks_of_one_server_;
  int64_t last_body_ = -1;
  size_t last_chosen_ = 0;
};

}  // namespace foretoken
