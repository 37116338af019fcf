// How much of a long run's time is training that counts, when the job fails now and then and goes on from a checkpoint.
//
// Failures come at random, one per mtbf on average, at any time but planned stops. After `interval` of work a
// checkpoint stops the job for `blocking`; it can be used `lag` later. T = interval + blocking, M = mtbf. After a
// recovery the next checkpoint is usable only if T + lag pass without a failure, after a usable checkpoint if T do, so
// that one takes
//   (exp(T / M) - 1) exp(lag / M) (M + Y)
// on average, Y being the mean recovery with the failures within it. Exact; for lag = 0 it is equation 13 of J. T.
// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22 (2006).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace foretoken {

// Detecting, replacing, starting again and reading the checkpoint after one kind of failure.
struct Recovery {
  std::string name;
  double share = 0;  // of failures; all add up to 1
  double seconds = 0;
  bool from_storage = false;  // checkpoints in host memory are lost with it
};

struct RunConditions {
  double mtbf_seconds = 0;
  double blocking_seconds = 0;
  double lag_seconds = 0;
  std::vector<Recovery> recoveries;
  double repeat_probability = 0;  // that the job fails again at once after a recovery
  // A copy in storage every so many checkpoints, usable `storage_lag_seconds` later: for recoveries `from_storage`.
  int64_t checkpoints_per_storage_copy = 1;
  double storage_lag_seconds = 0;
  double planned_stops_per_second = 0;  // of the time without them
  double planned_stop_seconds = 0;

  double mean_recovery_seconds() const;  // of one attempt, weighted by share
};

struct LostTime {
  std::string cause;
  double share = 0;  // of all time
};

struct Goodput {
  double interval_seconds = 0;
  double effective = 0;            // share of all time that is training that counts
  std::vector<LostTime> lost;      // the rest, by cause
  double failures_per_second = 0;  // of all time
};

// Exact but for recoveries from storage, which undo half the distance between two copies on average.
Goodput goodput(const RunConditions& conditions, double interval_seconds);

// The interval with the most goodput; not below `least_seconds`, nor shorter than one checkpoint takes to become
// usable, so that they never queue.
double best_interval_seconds(const RunConditions& conditions, double least_seconds = 1);

// J. W. Young, CACM 17 (1974): sqrt(2 blocking mtbf).
double young_interval_seconds(double blocking_seconds, double mtbf_seconds);

}  // namespace foretoken
