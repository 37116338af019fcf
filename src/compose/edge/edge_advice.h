// What takes the time of a network on a core, and what would help.
#pragma once

#include <string>
#include <vector>

#include "compose/edge/edge_model.h"

namespace foretoken {

struct EdgeAdvice {
  double share = 0;  // of the model's time that it is about
  std::string text;
};

// Most time first; nothing about what takes less than a few percent.
std::vector<EdgeAdvice> edge_advice(const EdgeLowering& lowering, const EdgePredictor& predictor,
                                    const EdgeModelEstimate& estimate);

}  // namespace foretoken
