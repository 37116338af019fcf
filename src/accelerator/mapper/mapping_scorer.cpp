#include "accelerator/mapper/mapping_scorer.h"

namespace foretoken {

std::optional<RunCosts> MappingScorer::costs_of(const Mapping& mapping, Evaluation& evaluation) const {
  if (!evaluator_.evaluate(mapping, evaluation)) return std::nullopt;
  return costs_ ? costs_(mapping, evaluation) : run_costs(evaluation);
}

}  // namespace foretoken
