// Which clock takes least energy while requests still meet their goals (throttLL'eM's question, arXiv 2408.05235, for
// one clock of the whole run).
#pragma once

#include <span>
#include <vector>

#include "serving/energy/energy_account.h"

namespace foretoken {

// A run with the processors of all boards held at a clock.
struct ClockTrial {
  double mhz = 0;
  ServingMetrics metrics;  // with goals
  EnergyAccount energy;

  double good_share() const;  // of completed requests: meet every goal
  bool meets_goals() const;   // 99 of 100 do
};

// From the top clock down to 0.65 of it: the power model has seen no lower clock.
std::vector<double> clocks_to_try(double top_mhz);

// The place of the trial with the least energy of the facility for an output token among those that meet their goals;
// where none does, that with the highest share of good requests, of equal ones the first.
size_t best_clock(std::span<const ClockTrial> trials);

}  // namespace foretoken
