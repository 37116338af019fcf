// The guard of a search: how much processor time it may take.
#pragma once

#include <atomic>
#include <optional>

namespace foretoken {

// CPU time of the whole process since it was made. A search that it ends may end elsewhere the next time.
class SearchClock {
 public:
  explicit SearchClock(std::optional<double> limit_seconds);
  bool expired() const;

 private:
  std::optional<double> limit_seconds_;
  double start_seconds_;
  mutable std::atomic<bool> expired_ = false;
};

}  // namespace foretoken
