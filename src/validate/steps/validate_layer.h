// One layer measured operator by operator, as LLMCompass publishes GPT-3's on four A100s.
#pragma once

#include "base/csv.h"
#include "library/device_models.h"
#include "validate/steps/step_validation.h"

namespace foretoken {

class Library;

// Columns: device, phase (prefill or decode), op, latency_ms; optional model, batch, input_len, context_len, tp. What
// is left out is as the request's conventions say. Recognised by these columns beside no measured_ms.
bool is_layer_table(const CsvReader& csv);

// Groups are phase/op, and phase/total for the sum of the operators of one phase and device; or what `group_by` says.
StepValidation validate_layer(const StepValidationRequest& request, const Library& library,
                              const DeviceModelMaker& make_models = {});

}  // namespace foretoken
