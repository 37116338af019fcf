// Searches the mappings of a problem on an accelerator for the best one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/evaluator.h"
#include "accelerator/mapper/constraints.h"
#include "accelerator/mapper/mapping_scorer.h"
#include "accelerator/mapper/mapping_space.h"
#include "accelerator/mapper/objective.h"

namespace foretoken {

struct MapperProgress {
  int64_t tried = 0;
  double best = 0;   // of the first metric; of no meaning until found
  double bound = 0;  // no mapping is below
  bool found = false;
};

struct MapperOptions {
  MappingObjective objective;
  int64_t most_tries = 300'000;              // mappings looked at; the result depends on nothing else but the seed
  bool ends_when_settled = false;            // also after two passes, each twice the one before, that gained nothing
  std::optional<double> time_limit_seconds;  // CPU time of all threads; a guard
  unsigned threads = 1;
  uint64_t seed = 1;
  Remainders remainders = Remainders::where_divisors_are_few;
  EvaluationRules rules;
  // Ranks mappings in place of their own evaluation; nothing is then proven about better ones (the bound is 0).
  MappingCosts costs;
  std::vector<Mapping> starts;  // of this problem and constraints, best first: every second chain begins with one
  bool frontier = false;
  std::function<void(const MapperProgress&)> progress;  // called between rounds, by one thread
};

struct FoundMapping {
  Mapping mapping;
  Evaluation evaluation;
  RunCosts costs;  // by which it was ranked
};

struct MapperResult {
  std::optional<FoundMapping> best;
  std::string reason;                  // when nothing fits
  int64_t tried = 0;                   // mappings looked at
  int64_t evaluations = 0;             // of those, that fit
  double log2_points = 0;              // size of the space with divisors as bounds
  double bound = 0;                    // of the first metric, proven
  double gap = 0;                      // (best - bound) / best; 0 when exhausted
  bool exhausted = false;              // every mapping was looked at, up to orders that make no difference
  bool out_of_time = false;            // the time limit ended the search; a rerun may end elsewhere
  std::vector<FoundMapping> frontier;  // energy against cycles, by rising cycles
};

// InputError when constraints contradict each other, the problem or the architecture.
MapperResult search_mappings(const Architecture& architecture, const Problem& problem, const Constraints& constraints,
                             const MapperOptions& options);

}  // namespace foretoken
