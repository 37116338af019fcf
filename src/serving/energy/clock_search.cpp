#include "serving/energy/clock_search.h"

#include <cmath>

#include "base/error.h"

namespace foretoken {

double ClockTrial::good_share() const {
  if (metrics.request_throughput == 0) return 0;
  // Of all requests: those that failed meet no goal.
  const auto completed = static_cast<double>(metrics.completed);
  const double served = completed / (completed + static_cast<double>(metrics.rejected));
  return served * metrics.goodput.value_or(metrics.request_throughput) / metrics.request_throughput;
}

bool ClockTrial::meets_goals() const {
  constexpr double share_wanted = 0.99, rounding = 1e-9;
  return good_share() >= share_wanted - rounding;
}

std::vector<double> clocks_to_try(double top_mhz) {
  constexpr int steps = 7;
  constexpr double lowest_share = 0.65;
  std::vector<double> clocks;
  for (int i = 0; i <= steps; ++i) clocks.push_back(std::round(top_mhz * (1 - (1 - lowest_share) * i / steps)));
  return clocks;
}

size_t best_clock(std::span<const ClockTrial> trials) {
  ensure(!trials.empty(), "a search has trials");
  const auto joules = [](const ClockTrial& trial) { return trial.energy.facility_joules_per_output_token.value; };
  size_t best = 0;
  for (size_t i = 1; i < trials.size(); ++i) {
    const ClockTrial &own = trials[i], &other = trials[best];
    const bool better =
        own.meets_goals() && other.meets_goals() ? joules(own) < joules(other) : own.good_share() > other.good_share();
    if (better) best = i;
  }
  return best;
}

}  // namespace foretoken
