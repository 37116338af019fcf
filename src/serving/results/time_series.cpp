#include "serving/results/time_series.h"

#include <algorithm>

#include "base/error.h"
#include "base/simulated_time.h"

namespace foretoken {

TimeSeries::TimeSeries(Picoseconds first_interval, size_t most_points)
    : interval_(first_interval), most_points_(most_points) {
  ensure(first_interval > 0 && most_points >= 2, "a series has intervals, and can halve their number");
}

// Spread evenly over the intervals that the step touches.
void TimeSeries::step_ran(const StepRecord& step) {
  const auto replica = static_cast<size_t>(step.replica);
  if (most_kv_blocks_.size() <= replica) {
    most_kv_blocks_.resize(replica + 1);
    counted_until_.resize(replica + 1);
  }
  most_kv_blocks_[replica] = std::max(most_kv_blocks_[replica], step.kv_blocks_used + step.kv_blocks_grown);
  while (static_cast<size_t>(step.end / interval_) >= most_points_) double_interval();
  const auto last = static_cast<size_t>(step.end / interval_);
  if (sums_.size() <= last) sums_.resize(last + 1);
  const auto length = static_cast<double>(step.end - step.begin);
  for (auto index = static_cast<size_t>(step.begin / interval_); index <= last; ++index) {
    const Picoseconds begin = std::max(step.begin, static_cast<Picoseconds>(index) * interval_);
    const Picoseconds end = std::min(step.end, static_cast<Picoseconds>(index + 1) * interval_);
    const auto within = static_cast<double>(end - begin);
    const double share = length > 0 ? within / length * static_cast<double>(step.repeats) : 1;
    Sums& sums = sums_[index];
    const Picoseconds fresh = std::max(begin, counted_until_[replica]);
    const auto alone = static_cast<double>(std::max<Picoseconds>(0, end - fresh));
    sums.running += static_cast<double>(step.running) * alone;
    sums.waiting += static_cast<double>(step.waiting) * alone;
    const double middle = length > 0 ? static_cast<double>(fresh + (end - fresh) / 2 - step.begin) / length : 0;
    sums.kv_blocks +=
        (static_cast<double>(step.kv_blocks_used) + middle * static_cast<double>(step.kv_blocks_grown)) * alone;
    sums.prefill_tokens += static_cast<double>(step.prefill_tokens) * share;
    sums.decode_tokens += static_cast<double>(step.decode_tokens + step.accepted_tokens) * share;
  }
  counted_until_[replica] = std::max(counted_until_[replica], step.end);
}

void TimeSeries::double_interval() {
  interval_ *= 2;
  std::vector<Sums> doubled((sums_.size() + 1) / 2);
  for (size_t i = 0; i < sums_.size(); ++i) {
    Sums& into = doubled[i / 2];
    into.running += sums_[i].running;
    into.waiting += sums_[i].waiting;
    into.kv_blocks += sums_[i].kv_blocks;
    into.prefill_tokens += sums_[i].prefill_tokens;
    into.decode_tokens += sums_[i].decode_tokens;
  }
  sums_ = std::move(doubled);
}

double TimeSeries::interval_s() const {
  return to_seconds(interval_).value();
}

std::vector<TimePoint> TimeSeries::points() const {
  std::vector<TimePoint> points;
  const auto interval = static_cast<double>(interval_);
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Sums& sums = sums_[i];
    points.push_back({.begin_s = static_cast<double>(i) * interval_s(),
                      .running = sums.running / interval,
                      .waiting = sums.waiting / interval,
                      .kv_blocks_used = sums.kv_blocks / interval,
                      .prefill_tokens_per_s = sums.prefill_tokens / interval_s(),
                      .decode_tokens_per_s = sums.decode_tokens / interval_s()});
  }
  return points;
}

}  // namespace foretoken
