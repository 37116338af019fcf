// Files that a serving run writes as it goes: one line for each request and step, and a trace for Perfetto.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "compose/stack.h"
#include "compose/step_estimate.h"
#include "serving/requests/request.h"

namespace foretoken {

// id,outcome,replica,arrival_s,...: times in seconds, latencies in ms. `out` must outlive it. `worded` names the fields
// in a sentence (base/error.h).
class RequestCsv : public RunObserver {
 public:
  using Worded = std::string (*)(std::string_view sentence);
  RequestCsv(std::ostream& out, Worded worded);
  void request_ended(const RequestRecord& record) override;

 private:
  std::ostream& out_;
  Worded worded_;
};

// replica,begin_s,end_s,repeats,...: equal decode steps in a row are one line.
class StepCsv : public RunObserver {
 public:
  explicit StepCsv(std::ostream& out);
  void step_ran(const StepRecord& step) override;

 private:
  std::ostream& out_;
};

// A process for each replica with its steps, requests on lanes below where none overlap, and counters of what runs,
// waits and fills the cache. The first `most_events` events only: viewers stop being useful beyond.
class RunTrace : public RunObserver {
 public:
  explicit RunTrace(size_t most_events = 1'000'000) : most_events_(most_events) {}
  // Also keeps the steps that run at these moments, in seconds.
  void watch(const std::vector<double>& moments);
  void request_ended(const RequestRecord& record) override;
  void step_ran(const StepRecord& step) override;

  bool is_complete() const { return !cut_; }
  const std::vector<StepRecord>& watched() const { return watched_; }
  // The kernels of a watched step, as `step` has them.
  void add_kernels(const StepRecord& record, const StepEstimate& step, const Stack& stack);
  Json document() const;

 private:
  bool has_room();
  int64_t free_lane(const RequestRecord& record);
  size_t most_events_;
  bool cut_ = false;
  Json events_ = Json::array();
  std::vector<Picoseconds> moments_;
  std::vector<StepRecord> watched_;
  Json kernels_ = Json::array();
  int64_t kernel_processes_ = 0;
  int32_t replicas_ = 0;
  std::map<int32_t, std::multimap<Picoseconds, int64_t>> lanes_by_end_;  // of each replica
};

}  // namespace foretoken
