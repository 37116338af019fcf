// The JSON of an answer, as `--json` of the command that asks the same prints it.
#pragma once

#include "base/json.h"
#include "compose/step_spec.h"
#include "plan/serving/serving_planner.h"
#include "report/serving/serving_report.h"
#include "serving/serving_spec.h"
#include "training/estimate/training_spec.h"

namespace foretoken {

ReplicaSummary summary_of(const ReplicaGroup& group);

Json to_json(const StepPrediction& prediction);
Json to_json(const ServingPrediction& prediction);
Json to_json(const TrainingPrediction& prediction);
Json to_json(const ServingPlanner& asked, const ServingSearchResult& found);

}  // namespace foretoken
