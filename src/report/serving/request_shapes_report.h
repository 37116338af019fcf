// What a serving run says of stages before the engine, and of thinking.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "serving/results/thinking_metrics.h"
#include "serving/stages/stage.h"

namespace foretoken {

// One line for each stage: batches, waits, service, utilisation over `duration_s`.
std::string stages_text(std::span<const StageUse> stages, double duration_s, const std::vector<double>& percentiles);
Json stages_json(std::span<const StageUse> stages, double duration_s, const std::vector<double>& percentiles);

std::string thinking_text(const ThinkingSummary& thinking, const std::vector<double>& percentiles);
Json thinking_json(const ThinkingSummary& thinking, const std::vector<double>& percentiles);

}  // namespace foretoken
