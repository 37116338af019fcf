// A step of a language model on a CPU: time by operator, tokens per second, and what bounds them.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "compose/edge/edge_model.h"

namespace foretoken {

struct EdgeStepReport {
  std::string model, phase;
  const EdgePredictor& predictor;
  const EdgeLowering& lowering;
  const EdgeModelEstimate& estimate;
  int64_t threads = 1;
  int64_t tokens = 1;  // that the step makes, or reads
  Bytes weights;
  std::string device_name = "";  // as it was asked for
};

std::string edge_step_text(const EdgeStepReport& report);
Json edge_step_json(const EdgeStepReport& report);

}  // namespace foretoken
