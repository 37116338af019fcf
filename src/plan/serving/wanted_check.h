// Ends a run that nobody waits for any more.
#pragma once

#include <functional>

#include "serving/requests/request.h"

namespace foretoken {

class WantedCheck final : public RunObserver {
 public:
  explicit WantedCheck(const std::function<void()>& check) : check_(&check) {}  // what it throws ends the run
  void step_ran(const StepRecord& /*record*/) override {
    if (*check_) (*check_)();
  }

 private:
  const std::function<void()>* check_;
};

}  // namespace foretoken
