// A pool whose replicas come and go: what is settled before a run, and what is counted in it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/simulated_time.h"
#include "serving/fleet/admission.h"
#include "serving/fleet/autoscaler.h"
#include "serving/fleet/regions.h"

namespace foretoken {

// A place for a replica: SimulationConfig::replicas has its engine.
struct FleetMember {
  int64_t devices = 1;
  Picoseconds cold_start = 0;  // from the decision to the first request it can take
};

// Replicas that stand in for each other: those of a region, or all; with disaggregation the prefill workers, then the
// decode workers.
struct FleetPool {
  int64_t members = 1;
  int64_t at_start = 1;  // of them, that serve when the run begins
  ReplicaCapacity capacity = {};
};

// Mean hours between failures of one GPU that stop what runs on it. Llama 3: 419 unexpected interruptions in 54 days on
// 16,384 H100s ("The Llama 3 Herd of Models", section 3.3.4), that is 16384 x 54 x 24 / 419.
inline constexpr double llama3_gpu_mtbf_hours = 50'700;

struct FailureSettings {
  double gpu_mtbf_hours = 0;  // exponential times between failures; 0 = none fails
  bool retry = true;          // requests of a failed replica begin again elsewhere; else they are lost
};

struct FleetConfig {
  std::vector<FleetMember> members;  // one for each replica, those of a pool together
  std::vector<FleetPool> pools;      // at least one
  RegionPolicy region_policy;        // where pools are regions
  AutoscalerSettings scaling;
  FailureSettings failures;
  std::vector<Picoseconds> drains;  // each pool's longest-serving replica is replaced; in order of time
  AdmissionSettings admission;
};

// How many replicas there are from a time on.
struct FleetSize {
  Picoseconds from = 0;
  int64_t serving = 0;
  int64_t held = 0;  // serving, starting and draining: paid for
};

struct FleetTotals {
  double gpu_seconds = 0;  // of replicas that start, serve or drain, until the last request has ended
  int64_t starts = 0;      // of replicas that were not there when the run began
  int64_t stops = 0;       // after a drain
  int64_t failures = 0;
  int64_t retried = 0;      // requests that began again
  int64_t lost_tokens = 0;  // that came out before a failure, and again after it
  int64_t remote = 0;       // requests served outside their region
  std::vector<FleetSize> sizes;
};

}  // namespace foretoken
