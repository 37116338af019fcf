// Predicts measured steps and says how far off the predictions are.
#pragma once

#include "compose/step_validation.h"

namespace foretoken {

// Columns: device, model, stack, dispatch, phase, batch, input_len, context_len, dtype, measured_ms; optional
// kernel_ms, sustained_ms, power_w, cache (dynamic, static, recompute), optimizer (none, adamw, adamw_fused,
// adam_mixed), logits (last, all, none), tp. NeuSight's table (device, model, mode, seq_len, batch, fusion,
// parallelism, measured_ms) is read as well: fp32, with the stacks hf-eager-math and torch-compile-math. So is a layer
// measured operator by operator (validate_layer.h).
StepValidation validate_steps(const StepValidationRequest& request, const HardwareCatalogue& hardware,
                              const ModelCatalogue& models, const StackCatalogue& stacks,
                              const StepPredictorMaker& make_predictor, const PowerModelMaker& make_power = {},
                              const ScoredStepSink& sink = {});

}  // namespace foretoken
