// A day whose rate varies: its cost with a fixed number of replicas and with an autoscaler.
#pragma once

#include <string>

#include "app/cli/flags/load_flags.h"
#include "app/cli/grammar/options.h"
#include "plan/serving/day_plan.h"

namespace foretoken {

struct DayFlags {
  const Options* options = nullptr;
  std::string day;  // empty = none
  DaySettings chosen;
  double cold_start_s = -1;

  void declare(Options& all);
  void check_use() const;
  void check_least_replicas(const ServingQuestion& question) const;
  bool given() const { return !day.empty(); }
  // `load`: its rate is the mean of a day that no file gives.
  DayRates rates(const LoadFlags& load) const;
  DaySettings settings(const LoadFlags& load) const;
};

}  // namespace foretoken
