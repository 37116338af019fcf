// What the runs of a layout are watched for: limits that are lost, steps to be metered, output of a steady service.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/simulated_time.h"
#include "plan/serving/serving_question.h"
#include "serving/requests/request.h"

namespace foretoken {

// Thrown by an observer: the run breaks a limit whatever comes.
struct LimitIsLost {};

// Ends the runs of a rate as soon as so many of their requests are late that no others could bring the percentile back.
// Percentiles are as numpy has them: of n values, the one at place floor(q (n - 1)) is not above it. Fewer values, such
// as those of requests with more than one token, need no more that are late.
class LateRequests final : public RunObserver {
 public:
  // `requests` of all runs together.
  LateRequests(const std::vector<LatencySlo>& slos, int64_t requests);

  void request_ended(const RequestRecord& record) override;
  double ended_share() const { return static_cast<double>(ended_) / static_cast<double>(requests_); }

 private:
  struct Limit {
    SloMetric metric;
    Picoseconds most;
    int64_t until_lost;
  };
  std::vector<Limit> limits_;
  int64_t requests_ = 0, ended_ = 0;
};

// Keeps the steps of a run, so that only those of runs that are shown are metered.
class StepLog final : public RunObserver {
 public:
  void step_ran(const StepRecord& step) override { steps_.push_back(step); }
  void replay(RunObserver& observer) const {
    for (const StepRecord& step : steps_) observer.step_ran(step);
  }

 private:
  std::vector<StepRecord> steps_;
};

// Output tokens that come out in the second half of the time in which requests arrive: neither the beginning of a run,
// with its empty batches, nor its end, when nobody comes any more, says what a queue that does not end would see.
class SteadyOutput final : public RunObserver {
 public:
  explicit SteadyOutput(double arrivals_s)
      : begin_(to_picoseconds(Seconds(arrivals_s / 2))), end_(to_picoseconds(Seconds(arrivals_s))) {}
  void request_ended(const RequestRecord& record) override;
  double tokens_per_s() const { return tokens_ / to_seconds(end_ - begin_).value(); }

 private:
  Picoseconds begin_, end_;
  double tokens_ = 0;
};

}  // namespace foretoken
