// What a mapping costs: traffic of every tensor at every level, cycles and energy, in closed form from the loops.
//
// Counts follow Timeloop (Parashar et al., ISPASS 2019): data stay where they are while no loop that touches them
// moves, a sliding window fetches only what is new, one read serves every instance that wants the word, the first pass
// over a sum reads nothing. `cycles` assumes perfect overlap, as there; `latency` takes the transfers out of it that
// nothing hides and adds them: never less than `cycles`, never more than everything done one after another. A transfer
// takes as long as the slower of the ports at its two ends.
#pragma once

#include <memory>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/evaluation_rules.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"

namespace foretoken {

// One tensor at one level: words of one instance over the whole run (the mean, where remainders make them differ).
struct TensorTraffic {
  bool kept = false;
  double tile_words = 0;
  double instances = 0;  // that hold it
  double reads = 0, fills = 0, updates = 0;
  double energy_pj = 0;       // of all instances
  double words_to_below = 0;  // received by all instances below from all at this level: reads times multicast
};

struct LevelUse {
  double used_words = 0;                         // of one instance
  double instances = 0;                          // with work
  double across = 1, down = 1;                   // instances below one of these with work
  double cycles = 0;                             // that its bandwidth asks for
  double exposed_reads = 0, exposed_writes = 0;  // words of one instance on their way while nothing computes
  // Words of one instance read to go further out: part of `latency`; Timeloop counts no such reads.
  double passed_up = 0;
  double access_pj = 0, leakage_pj = 0;
  double network_pj = 0;     // of words on their way to and from the level below
  double mesh_words = 0;     // of all meshes: words times the links that each passes
  double mesh_entering = 0;  // words that the level, or an instance below, puts on its mesh
  double mesh_cycles = 0;    // that its links ask for
  double rows_opened = 0;    // of one instance, over all channels
  double row_cycles = 0;     // more than the words alone take: rows that open, and refreshes
};

struct LatencyParts {
  // Compute, and the transfers that run beside it: all but those of the parts below.
  double overlapped_cycles = 0;
  double fill_cycles = 0;   // first tiles on their way in
  double drain_cycles = 0;  // last results on their way out
  double stall_cycles = 0;  // transfers into levels with a single buffer, which nothing hides
  double feed_cycles = 0;   // words on their way through the array, each time it starts over
};

struct Evaluation {
  double operations = 0;
  double compute_cycles = 0;
  double cycles = 0;       // compute, or the level whose bandwidth asks for more
  int slowest_level = -1;  // -1 = compute
  LatencyParts latency;
  double energy_pj = 0;
  double compute_pj = 0;
  std::vector<LevelUse> levels;        // without the compute level, but for leakage and instances
  std::vector<TensorTraffic> traffic;  // levels x tensors

  double latency_cycles() const {
    return latency.overlapped_cycles + latency.fill_cycles + latency.drain_cycles + latency.stall_cycles +
           latency.feed_cycles;
  }
};

class MappingEvaluator {
 public:
  // Both must outlive the evaluator. InternalError when either has a fault.
  MappingEvaluator(const Architecture& architecture, const Problem& problem, EvaluationRules rules = {});
  ~MappingEvaluator();
  MappingEvaluator(MappingEvaluator&&) noexcept;

  const Architecture& architecture() const;
  const Problem& problem() const;

  // Whether the mapping fits fan-outs and buffers; when not, the result is not to be used and mapping_faults says why.
  // Loops must cover the problem. Allocates nothing once `result` has been used before.
  bool evaluate(const Mapping& mapping, Evaluation& result) const;

 private:
  struct Plan;
  std::unique_ptr<const Plan> plan_;
};

inline const TensorTraffic& traffic_at(const Evaluation& evaluation, const Problem& problem, size_t level,
                                       size_t tensor) {
  return evaluation.traffic[level * problem.tensors.size() + tensor];
}

// Operations done of those that all multipliers could have done.
double utilization(const Evaluation& evaluation, const Architecture& architecture);

}  // namespace foretoken
