// Latencies of several runs at one rate, judged together: a percentile of all their requests, and how sure it is that
// the share of late requests stays below a limit for ever.
#pragma once

#include <span>
#include <vector>

#include "plan/serving/latency_slo.h"
#include "serving/requests/request.h"

namespace foretoken {

// What the completed requests of one run took, in the order of their arrival.
class LatencyLog final : public RunObserver {
 public:
  static constexpr Picoseconds none = -1;  // not completed, or a TPOT of a single token
  struct Took {
    Picoseconds ttft = none, tpot = none, e2el = none;
    Picoseconds of(SloMetric metric) const;  // not of itl
    bool operator==(const Took&) const = default;
  };

  explicit LatencyLog(int64_t requests) : took_(static_cast<size_t>(requests)) {}
  void request_ended(const RequestRecord& record) override;
  void set(size_t request, SloMetric metric, Picoseconds took);  // not of itl
  // What so many runs judged together need to know of this one: times that are neither late nor among the longest are
  // 0.
  LatencyLog thinned(std::span<const LatencySlo> limits, int64_t runs) const;
  const std::vector<Took>& requests() const { return took_; }

 private:
  std::vector<Took> took_;
};

class PooledLatencies {
 public:
  void add(const LatencyLog& run);

  // Of all requests of all runs, as numpy interpolates; 0 where none has the metric. Not of itl.
  double percentile_ms(const LatencySlo& slo) const;
  double late_share(std::span<const LatencySlo> limits) const;  // of the requests: those that exceed one of them
  // That share, of all requests that might come, is below this with a probability of 95%. Late requests come in
  // clusters, while a queue lasts: the error of their share is that of the shares of batches of `batch` requests, not
  // that of independent ones (batch means; Law and Kelton, Simulation Modeling and Analysis).
  double late_share_at_most(std::span<const LatencySlo> limits) const;
  // The least that late_share_at_most() may come to once there are `runs` runs as long as these, whatever requests the
  // others have.
  double late_share_at_most_of(size_t runs, std::span<const LatencySlo> limits) const;
  size_t runs() const { return runs_.size(); }

  static constexpr int64_t batch = 1000;

 private:
  struct Batch {
    double late = 0, all = 0;
  };
  static Batch sum_of(const std::vector<Batch>& batches);
  static double at_most(const std::vector<Batch>& all);
  std::vector<Batch> batches(std::span<const LatencySlo> limits) const;

  std::vector<std::vector<LatencyLog::Took>> runs_;
};

// Below it lie 95% of Student's t of the mean of so many values, at least two.
double student_95(size_t values);

}  // namespace foretoken
