// Which chains of operators a runtime runs as one, told from the times of test models.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/edge/fusion_plan.h"

namespace foretoken {

struct FindFusionOptions {
  double least_share = 0.5;   // of what could be saved: more than this is fused (nn-Meter's alpha)
  double noise_share = 0.02;  // of each time: how far it may be off
  int passes = 4;             // at most; chains that are clear after two are not timed again
};

enum class FusionVerdict : uint8_t { apart, unsure, fused };
std::string_view fusion_verdict_name(FusionVerdict verdict);

// Seconds of the operators alone: those of the empty model are taken off.
struct FusionFinding {
  std::string name;
  std::vector<std::string> chain;
  FusionVerdict verdict = FusionVerdict::unsure;
  double saved_share = 0;  // of what running all parts within the longest would save; 1: the others are free
  double noise_share = 0;  // how far off that share may be
  double whole_seconds = 0;
  std::vector<double> part_seconds;
};

// By name of the model.
using FusionTimes = std::map<std::string, double>;

// saved = sum of the parts - whole; possible = sum of the parts - longest part. Fused: saved is beyond least_share of
// what is possible by more than the noise, which is that of all times in quadrature; apart: short of it by more.
FusionFinding judge_fusion(const FusionProbe& probe, const FusionTimes& seconds, const FindFusionOptions& options = {});

// Times models, by their names; a model that cannot be run has no time.
using FusionRunner = std::function<FusionTimes(std::span<const std::string> models)>;

struct FoundFusion {
  std::vector<FusionFinding> findings;
  std::vector<std::string> not_run;  // chains with a model that the runtime refused
};

// Least time of each model over the passes; after the second, only chains that are not clear yet are timed.
FoundFusion find_fusion(const FusionPlan& plan, const FusionRunner& run, const FindFusionOptions& options = {});

}  // namespace foretoken
