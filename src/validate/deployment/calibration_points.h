// Published operating points in groups of one lab, engine and GPU: constants from one point of a group, scored on its
// other points.
#pragma once

#include "base/validation.h"
#include "serving/engine/engine_builder.h"
#include "validate/deployment/calibration_validation_request.h"

namespace foretoken {

class Library;

// Groups share source, engine with its version, GPU, model and weight format, and have four points or more with a time
// per token. The point of medium load calibrates; load is the rank of the predicted time per token.
void score_points(const CalibrationValidationRequest& request, const Library& library, const ServingFacts& facts,
                  ValidationTally& tally, Validation& result);

}  // namespace foretoken
