// The fastest plans of a training job on so many devices: every plan is looked at by formula, the promising ones are
// then estimated in full.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/estimate.h"
#include "base/units.h"
#include "plan/plan_space.h"
#include "training/estimate/training_estimate.h"
#include "training/iteration.h"
#include "training/memory/training_memory.h"
#include "training/training_machine.h"

namespace foretoken {

struct TrainingSearch {
  TrainingJob job;
  TrainingStack stack;
  TrainingMachine machine;
  int64_t devices = 1, global_batch = 1;
  int64_t fast_domain = 1;  // devices of a node: tensor ranks stay inside
  TrainingFormats formats;
  MemoryOverheads overheads;
  // Of a device; none = everything fits. `overheads.usable` of it may be needed: a search finds the plans whose memory
  // is underestimated.
  std::optional<Bytes> capacity;
  HostMemoryLink host;
  TrainingPlan start;  // what no choice is about
  PlanChoices choices;
  size_t best = 10;      // plans to return
  unsigned threads = 1;  // the result is the same for any number
};

struct RankedPlan {
  TrainingPlan plan;
  Estimate seconds;
  Bytes memory;  // of the fullest stage
  double tokens_per_second_per_device = 0;
};

// Experts beyond the fast domain send tokens over the network, whose time is the least certain: such plans are ranked
// as if they took this much longer.
inline constexpr double expert_network_margin = 1.05;

struct TrainingSearchResult {
  // In the order of their ranks, one for each choice of tensor, context, expert and pipeline ranks.
  std::vector<RankedPlan> best;
  std::vector<RankedPlan> frontier;  // least memory first; each is faster than all that need less
  // The plan of the frontier that needs least memory and is at most 3% slower than the fastest, where that is much less
  // memory.
  std::optional<RankedPlan> roomy;
  int64_t looked_at = 0, too_large = 0, estimated = 0;
  bool offloads_optimizer = false;  // nothing fits unless its state is in host memory
};

// The fastest of the best plans where caution puts a slower one first; nullptr = the first is the fastest.
const RankedPlan* faster_than_first(const TrainingSearchResult& result);

// Every plan needs more memory than a device has.
struct NearestPlan {
  int64_t looked_at = 0;
  TrainingPlan plan;  // the one that needs least
  Bytes memory, capacity;
};
class NoTrainingPlanFits : public InputError {
 public:
  explicit NoTrainingPlanFits(NearestPlan nearest);
  const NearestPlan& nearest() const { return nearest_; }

 private:
  NearestPlan nearest_;
};

// NoTrainingPlanFits; InputError where no plan is valid.
TrainingSearchResult search_training_plans(const TrainingSearch& search);

struct TrainingPlanOptions {
  PlanChoices choices = {};
  size_t best = 10;
  unsigned threads = 1;
  bool may_offload = false;  // the optimizer's state, where nothing fits otherwise
};
// The same for a question, whose plan tells what no choice is about.
TrainingSearchResult plan_training(const TrainingQuestion& question, const MachineModels& machine,
                                   const TrainingPlanOptions& options = {});

}  // namespace foretoken
