// A training job on GPUs of several kinds, for people and for programs.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "training/pools/mixed_pools.h"

namespace foretoken {

// One sentence where a pool's GPUs have too little memory; empty where all fit.
std::string mixed_failure(std::span<const TrainingPool> pools, const MixedEstimate& estimate);

// Begins with the failure, where there is one.
std::string mixed_text(std::span<const TrainingPool> pools, const MixedEstimate& estimate);
Json mixed_json(std::span<const TrainingPool> pools, const MixedEstimate& estimate);

}  // namespace foretoken
