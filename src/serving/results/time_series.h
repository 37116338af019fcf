// How a run went over time: what ran, what waited, how full the cache was, how many tokens came out.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

// Means over one interval, of all replicas together.
struct TimePoint {
  double begin_s = 0;
  double running = 0, waiting = 0;  // requests
  double kv_blocks_used = 0;
  double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;
};

// At most `most_points` intervals of equal length; the length doubles when the run outgrows them.
class TimeSeries : public RunObserver {
 public:
  explicit TimeSeries(Picoseconds first_interval = 1'000'000'000'000, size_t most_points = 1024);

  void step_ran(const StepRecord& step) override;

  double interval_s() const;
  std::vector<TimePoint> points() const;
  // By replica, in its fullest step; those at the end that never ran are not there.
  const std::vector<int64_t>& most_kv_blocks() const { return most_kv_blocks_; }

 private:
  struct Sums {
    double running = 0, waiting = 0, kv_blocks = 0;  // times picoseconds
    double prefill_tokens = 0, decode_tokens = 0;
  };
  void double_interval();

  Picoseconds interval_;
  size_t most_points_;
  std::vector<Sums> sums_;
  std::vector<int64_t> most_kv_blocks_;
  std::vector<Picoseconds> counted_until_;  // by replica: steps of pipeline stages overlap, requests count once
};

}  // namespace foretoken
