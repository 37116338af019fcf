// Local search of mappings: one chain of random changes that accepts what is worse less and less often.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "accelerator/evaluator.h"
#include "accelerator/mapper/mapping_scorer.h"
#include "accelerator/mapper/mapping_space.h"
#include "accelerator/mapper/objective.h"
#include "accelerator/mapper/search_clock.h"
#include "base/random.h"

namespace foretoken {

struct ScoredPoint {
  MappingPoint point;
  MappingScore score;
  double energy_pj = 0, cycles = 0;
};

// Points of which none is better in both energy and cycles, by rising cycles.
struct MappingFrontier {
  std::vector<ScoredPoint> points;
  void offer(const ScoredPoint& own);
};

struct CoolingSchedule {
  double hot = 0.3, cold = 0.003;  // temperatures, as relative changes of the objective
};

// The same changes for the same seed and number, whatever else runs.
class AnnealingChain {
 public:
  AnnealingChain(const MappingSpace& space, const MappingScorer& scorer, uint64_t seed, int number,
                 bool keeps_frontier);

  // Spreads work over the array in a random good way, all else outermost. Looks at `most_tries` mappings at most.
  void restart(int64_t most_tries);
  void start_from(const ScoredPoint& point);
  // At this point where it fits, else as restart does.
  void start_at(const MappingPoint& point, int64_t most_tries);
  // So many changes; fewer when the time is up.
  void run(int64_t changes, const CoolingSchedule& cooling, const SearchClock& clock);

  const std::optional<ScoredPoint>& best() const { return best_; }
  const MappingFrontier& frontier() const { return frontier_; }
  int64_t tried() const { return tried_; }
  int64_t evaluations() const { return evaluations_; }  // of those, that fit

 private:
  bool evaluate(ScoredPoint& own);
  void fill_array(MappingPoint& point);
  bool change(MappingPoint& point);
  bool move_factor(MappingPoint& point);
  bool swap_factors(MappingPoint& point);
  bool resize_tile(MappingPoint& point, int dimension);
  bool change_order(MappingPoint& point);
  bool change_kept(MappingPoint& point);
  double cost(const MappingScore& score) const;

  const MappingSpace& space_;
  const MappingScorer& scorer_;
  RandomStream random_;
  bool keeps_frontier_;
  std::vector<int> movable_;                       // dimensions with a choice of slots
  std::vector<int> ordered_levels_;                // with a choice of order
  std::vector<std::pair<int, int>> free_to_keep_;  // level and tensor
  std::optional<ScoredPoint> current_, best_;
  ScoredPoint candidate_;
  MappingFrontier frontier_;
  Mapping mapping_;
  Evaluation evaluation_;
  int64_t tried_ = 0, evaluations_ = 0;
};

}  // namespace foretoken
