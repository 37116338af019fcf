#include "serving/steps/equal_step.h"

namespace foretoken {

std::array<double, 3> step_sizes(const StepBatch& batch) {
  const auto decodes = static_cast<double>(batch.decodes + batch.drafted_tokens);
  const double context = batch.decodes > 0 ? static_cast<double>(batch.decode_context_tokens) / decodes : 0;
  return {static_cast<double>(batch.new_tokens()) - decodes, decodes, context};
}

StepRequest equal_step(const std::array<int64_t, 3>& sizes, DType kv_dtype) {
  const auto [prompt_tokens, decodes, context] = sizes;
  StepRequest request{.batch = decodes, .context_len = context, .kv_dtype = kv_dtype};
  if (prompt_tokens > 0) {
    request.phase = decodes > 0 ? StepPhase::mixed : StepPhase::prefill;
    request.batch = decodes + 1;
    request.input_len = prompt_tokens;
    request.context_len = decodes > 0 ? context : 0;
    request.prompts = decodes > 0 ? 1 : 0;
  }
  return request;
}

}  // namespace foretoken
