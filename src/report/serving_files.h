// Files that a serving run writes as it goes: one line for each request and step, and a trace for Perfetto.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

#include "base/json.h"
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
  void request_ended(const RequestRecord& record) override;
  void step_ran(const StepRecord& step) override;

  bool is_complete() const { return !cut_; }
  Json document() const;

 private:
  bool has_room();
  int64_t free_lane(const RequestRecord& record);
  size_t most_events_;
  bool cut_ = false;
  Json events_ = Json::array();
  int32_t replicas_ = 0;
  std::map<int32_t, std::multimap<Picoseconds, int64_t>> lanes_by_end_;  // of each replica
};

}  // namespace foretoken
