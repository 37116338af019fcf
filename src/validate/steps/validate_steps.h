// Predicts measured steps and says how far off the predictions are.
#pragma once

#include "library/device_models.h"
#include "validate/steps/step_validation.h"

namespace foretoken {

class Library;

// Columns: device, model, stack, dispatch, phase, batch, input_len, context_len, dtype, measured_ms; optional
// kernel_ms, sustained_ms, power_w, cache (dynamic, static, recompute), optimizer (none, adamw, adamw_fused,
// adam_mixed), logits (last, all, none), tp. NeuSight's table (device, model, mode, seq_len, batch, fusion,
// parallelism, measured_ms) is read as well: fp32, with the stacks hf-eager-math and torch-compile-math. So is a layer
// measured operator by operator (validate_layer.h).
// Every row becomes a StepSpec and is answered as predict_step() answers it.
// `models`: predictors of a device in place of the library's, for tests.
StepValidation validate_steps(const StepValidationRequest& request, const Library& library,
                              const ScoredStepSink& sink = {}, const DeviceModelMaker& models = {});

}  // namespace foretoken
