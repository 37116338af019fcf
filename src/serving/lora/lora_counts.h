// What a run's adapters did.
#pragma once

#include <algorithm>
#include <cstdint>

#include "serving/requests/request.h"

namespace foretoken {

class LoraCounts final : public RunObserver {
 public:
  void step_ran(const StepRecord& step) override;

  int64_t steps = 0;             // with adapters
  int64_t most_adapters = 0;     // in one step
  AdapterLoads loads;            // of all of them together
  double mean_adapters() const;  // of a step that has some

 private:
  int64_t adapters_ = 0;
};

}  // namespace foretoken
