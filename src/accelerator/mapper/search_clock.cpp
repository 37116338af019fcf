#include "accelerator/mapper/search_clock.h"

#include <ctime>

namespace foretoken {
namespace {

double process_cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

SearchClock::SearchClock(std::optional<double> limit_seconds)
    : limit_seconds_(limit_seconds), start_seconds_(process_cpu_seconds()) {}

bool SearchClock::expired() const {
  if (!limit_seconds_ || expired_) return expired_;
  if (process_cpu_seconds() - start_seconds_ >= *limit_seconds_) expired_ = true;
  return expired_;
}

}  // namespace foretoken
