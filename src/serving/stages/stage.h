// Work that requests pass before they reach an engine: a retrieval, an image encoder. Servers with one queue.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "serving/requests/request.h"
#include "serving/results/latency_distribution.h"
#include "serving/steps/step_bound.h"

namespace foretoken {

// What a stage does with requests, and how long it takes. Not thread-safe.
class StageTimes {
 public:
  virtual ~StageTimes() = default;
  // False: the request passes by without waiting.
  virtual bool serves(const Request& /*request*/) const { return true; }
  // One batch on one server.
  virtual Estimate batch_seconds(std::span<const Request> batch) = 0;
  // What is left for those behind it to do: an image that has been encoded is not encoded again.
  virtual void finish(Request& /*request*/) const {}
};

struct StageConfig {
  std::string name;
  int64_t servers = 1;
  int64_t max_batch = 1;        // requests that one server takes at once
  StageTimes* times = nullptr;  // not owned; stages of several runs may share one
};

// What went on in a stage over a run.
struct StageUse {
  std::string name;
  int64_t servers = 1;
  int64_t batches = 0;
  LatencyDistribution wait;     // of each request, for a server
  LatencyDistribution service;  // of each request: its whole batch
  double busy_s = 0;            // of all servers together

  // Share of the servers' time; 0 where `duration_s` is.
  double utilisation(double duration_s) const;
  double mean_batch() const;  // 0 without batches
};

// First come, first served: an idle server takes all that waits, up to `max_batch`; nobody waits for a batch to fill.
class RequestStage {
 public:
  RequestStage(const StageConfig& config, StepBound bound);

  void arrive(Request&& request, Picoseconds now);
  // When a batch ends; nothing while all servers are idle.
  std::optional<Picoseconds> next_event() const;
  // The batch that ends at `now`, in the order of the queue.
  std::vector<Request> advance(Picoseconds now);

  bool serves(const Request& request) const { return config_.times->serves(request); }
  const StageUse& use() const { return use_; }

 private:
  struct Waiting {
    Request request;
    Picoseconds since = 0;
  };
  struct Batch {
    Picoseconds end = 0;
    std::vector<Request> requests;
  };

  void start_batches(Picoseconds now);

  StageConfig config_;
  StepBound bound_;
  std::deque<Waiting> waiting_;
  std::vector<Batch> running_;  // by end; of equal ends the first started first
  StageUse use_;
};

// A service time that is given.
std::unique_ptr<StageTimes> fixed_stage(double seconds);

}  // namespace foretoken
