// Simulates measured operating points and says how far off the predictions are.
#pragma once

#include "base/validation.h"
#include "serving/engine/engine_builder.h"
#include "validate/serving/scored_serving.h"

namespace foretoken {

class Library;

// Every row becomes specs (serving_specs.h) and is answered as simulate_serving() answers them, with engines of
// `facts`. Rows that share model, device and engine are simulated by one thread, one after the other; the answer does
// not depend on the number of threads.
Validation validate_serving(const ServingValidationRequest& request, const Library& library, const ServingFacts& facts,
                            const ScoredServingSink& sink = {});

}  // namespace foretoken
