// Ranks mappings during a search: by their own evaluation, or by costs that the caller works out from it.
#pragma once

#include <functional>
#include <optional>

#include "accelerator/evaluator.h"
#include "accelerator/mapper/objective.h"
#include "accelerator/mapping.h"

namespace foretoken {

// What a mapping costs, from its dense evaluation; nothing when it does not fit after all. Called by several threads.
using MappingCosts = std::function<std::optional<RunCosts>(const Mapping& mapping, const Evaluation& dense)>;

class MappingScorer {
 public:
  // All must outlive the scorer. Without `costs`, those of the evaluation.
  MappingScorer(const MappingEvaluator& evaluator, const MappingObjective& objective, const MappingCosts& costs)
      : evaluator_(evaluator), objective_(objective), costs_(costs) {}

  const MappingEvaluator& evaluator() const { return evaluator_; }
  const MappingObjective& objective() const { return objective_; }

  // Nothing when the mapping does not fit; `evaluation` is then not to be used.
  std::optional<RunCosts> costs_of(const Mapping& mapping, Evaluation& evaluation) const;

 private:
  const MappingEvaluator& evaluator_;
  const MappingObjective& objective_;
  const MappingCosts& costs_;
};

}  // namespace foretoken
