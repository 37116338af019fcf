// Speed for a user against work, cost and energy: the runs that none beats.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/serving/plan_evaluator.h"

namespace foretoken {

// What the speed of a user is traded for.
enum class FrontierMeasure : uint8_t {
  work,   // most output tokens/s of a device
  cost,   // least USD for an output token, where prices are known
  energy  // least joules for an output token, where power is known
};
inline constexpr size_t frontier_measures = 3;

// A run such that none is faster for a user and better in every one of the measures that it is best in.
struct FrontierRun {
  size_t point = 0, run = 0;  // places among the points and in its runs
  double tokens_per_s_of_user = 0;
  double tokens_per_s_of_device = 0;
  std::array<bool, frontier_measures> best_in = {};  // by FrontierMeasure: at this speed or a higher one
};

// Most tokens/s of a user first.
std::vector<FrontierRun> frontier_of(const ServingQuestion& question, std::span<const PlanPoint> points);

}  // namespace foretoken
