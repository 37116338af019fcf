// Where the requests of a run are served.
#pragma once

#include "serving/requests/event_loop.h"
#include "serving/simulation/simulation_config.h"

namespace foretoken {

// Engines, and what spreads requests over them: one kind in a run.
class Site : public RequestTaker {
 public:
  // Adds its components to the loop.
  virtual void join(EventLoop& loop) = 0;
  // When no request is left.
  virtual SimulationTotals final_totals(Picoseconds now) = 0;
};

}  // namespace foretoken
