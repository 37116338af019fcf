// When the first and the last request of a run arrived.
#pragma once

#include <algorithm>
#include <optional>

#include "base/simulated_time.h"
#include "serving/requests/request.h"

namespace foretoken {

class ArrivalSpan : public RunObserver {
 public:
  void request_ended(const RequestRecord& record) override {
    first_ = std::min(first_.value_or(record.arrival), record.arrival);
    last_ = std::max(last_, record.arrival);
  }

  double first_s() const { return to_seconds(first_.value_or(0)).value(); }
  double last_s() const { return to_seconds(last_).value(); }

 private:
  std::optional<Picoseconds> first_;
  Picoseconds last_ = 0;
};

}  // namespace foretoken
