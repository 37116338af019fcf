// What a day costs: with as many replicas as its peak needs all day long, and with an autoscaler that starts and stops
// them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/serving/day_rates.h"
#include "plan/serving/serving_search.h"

namespace foretoken {

struct DaySettings {
  DayRates rates;
  std::string autoscaler = "predictive";  // serving/fleet/autoscaler.h
  double utilization = 0.8;               // of a replica's capacity that the autoscaler plans for
  int64_t least_replicas = 1;
  std::optional<double> cold_start_s = {};  // nothing = what provisioning, weights and the engine's start take
};

// A day with a number of replicas.
struct DayRun {
  int64_t least_replicas = 0, most_replicas = 0;  // that serve
  double mean_held = 0;                           // replicas paid for
  double gpu_hours = 0;
  std::optional<double> usd;
  std::optional<double> good_share;  // of the requests that meet every limit;
                                     // nothing where none was simulated
  std::optional<int64_t> starts;     // of replicas; nothing where none was simulated
};

struct DayOfLayout {
  ServingLayout layout;  // as the search found it, for the peak
  DayRun fixed;
  std::optional<DayRun> scaled;
  std::string why_not_scaled;  // where it is not
};

struct DayPlan {
  DaySettings settings;
  double speed = 1;  // that days were simulated at: rates changed so many times as fast
  std::vector<DayOfLayout> layouts;
};

// The best layout of each device and engine that serves the peak, the cheapest day first. Where the search simulated
// nothing, neither does this: replicas then follow the rate. What `check_wanted` throws ends the work.
DayPlan plan_day(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                 const ServingSearchResult& result, const DaySettings& settings,
                 const std::function<void()>& check_wanted = {});

}  // namespace foretoken
