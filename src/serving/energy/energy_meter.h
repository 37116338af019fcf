// What the boards of a run draw in its steps, beyond what they draw idle.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/estimate.h"
#include "serving/requests/request.h"
#include "serving/requests/run_parts.h"
#include "serving/steps/sustained_grid.h"

namespace foretoken {

// W of all boards of a replica together beyond idle, mean over a step of this size (SustainedGrid::watts_above_idle).
using StepWatts = std::function<Estimate(const SustainedGrid::Step&)>;

// Of a replica whose ranks run the steps of `grid` in lock step, each its share. `grid` outlives it.
StepWatts watts_of_replica(SustainedGrid& grid, int64_t lock_step_ranks);

// Kinds of steps: StepPhase::prefill, decode and mixed, in this order.
inline constexpr size_t step_kinds = 3;
using JoulesByStep = std::array<Estimate, step_kinds>;

// Adds up watts x time over all steps; errors of the watts go the same way in all of them. A run of equal decode steps
// counts at its mean context. Memory: one number for each second of the run and for each replica.
// Assumed: a board that drafts (speculation), or waits behind another step in a pipeline, draws what it draws in the
// target's step.
class EnergyMeter : public RunObserver {
 public:
  // One for each replica, in their order.
  explicit EnergyMeter(std::vector<StepWatts> watts_of_replica);

  void step_ran(const StepRecord& step) override;
  void add_parts(RunParts& parts) const override { parts.add(RunPart::energy); }

  const JoulesByStep& joules() const { return joules_; }
  const std::vector<double>& joules_of_replica() const { return joules_of_replica_; }
  // Of all replicas in the whole second of simulated time in which they drew most.
  double peak_watts() const;

 private:
  void spread(Picoseconds begin, Picoseconds end, double joules);

  std::vector<StepWatts> watts_of_replica_;
  JoulesByStep joules_ = {};
  std::vector<double> joules_of_replica_;
  Picoseconds first_second_ = 0;
  std::vector<double> joules_in_second_;  // from the first
};

}  // namespace foretoken
