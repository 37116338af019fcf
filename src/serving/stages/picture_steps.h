// Steps of an engine that encodes the pictures of its prompts itself.
#pragma once

#include <memory>

#include "serving/stages/encoder_passes.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// A step that computes the first token of a picture encodes it before, on the same devices (vLLM V1: the encoder runs
// in front of the language model, v1/worker/gpu_model_runner.py, _execute_mm_encoder). vLLM's budget for encoder tokens
// of a step is never below max_num_batched_tokens, so it rarely holds a picture back, and is left out. Both must
// outlive the result.
std::unique_ptr<StepTimes> picture_steps(StepTimes& engine, PictureEncoder& encoder);

}  // namespace foretoken
