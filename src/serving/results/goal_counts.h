// How many requests of each priority met their TTFT goal.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

struct GoalCount {
  Picoseconds goal = 0;
  int64_t met = 0, late = 0, rejected = 0;

  int64_t requests() const { return met + late + rejected; }
  double met_share() const { return requests() > 0 ? static_cast<double>(met) / static_cast<double>(requests()) : 1; }
};

class GoalCounts : public RunObserver {
 public:
  // By priority, the last for all that follow; empty = nothing is counted.
  explicit GoalCounts(const std::vector<Picoseconds>& goals);
  void request_ended(const RequestRecord& record) override;

  const std::vector<GoalCount>& counts() const { return counts_; }

 private:
  std::vector<GoalCount> counts_;
};

}  // namespace foretoken
