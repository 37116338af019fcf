// What interrupts a training job, how often, and what it takes to go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/scale/checkpoints.h"
#include "training/scale/goodput.h"

namespace foretoken {

struct FailureClass {
  std::string name;
  double share = 0;              // of the unexpected interruptions that single devices cause
  bool replaces_device = false;  // the job goes on with another one
};

// Llama 3 405B: 419 unexpected interruptions of 54 days on 16,384 GPUs (arXiv 2407.21783, table 5), in five groups.
std::vector<FailureClass> llama3_failure_classes();

struct FailureModel {
  double device_mtbf_hours = 54.0 * 24 * 16384 / 419;  // Llama 3: 50,700
  std::vector<FailureClass> classes = llama3_failure_classes();
  double planned_stops_per_day = 47.0 / 54;  // Llama 3; automated maintenance and changes by operators
  double planned_stop_seconds = 600;         // assumed
  // Faults that take several devices at once (a rack's power, a switch): each group of so many devices has one every so
  // many hours. 0 = none: Llama 3's count holds those already.
  double group_mtbf_hours = 0;
  int64_t group_devices = 0;
  double repeat_probability = 0;  // that the job fails again at once after a restart: the wrong node was blamed
};

// Assumed where no source is given; published runs state sums alone (MegaScale, arXiv 2402.15627: detection and
// diagnosis below 10 minutes, back to the progress of the last checkpoint within 15).
struct RecoveryPlan {
  double detect_seconds = 120;
  double restart_seconds = 300;      // processes, communicators, data loaders, first step
  double replacement_seconds = 240;  // another node through the scheduler
  double swap_seconds = 30;          // a spare that waits with its processes running
  int64_t spare_devices = 0;
  double repair_hours = 24;  // until a broken device is a spare again
};

struct JobReliability {
  double mtbf_hours = 0;
  double failures_per_day = 0;
  double no_spare_probability = 1;  // that a broken device finds none
  CheckpointSeconds checkpoint;
  RunConditions conditions;
};

// All of it for a job on so many devices.
JobReliability job_reliability(const FailureModel& failures, const RecoveryPlan& recovery,
                               const CheckpointPlan& checkpoints, int64_t devices);

// At the interval of the plan, or the best one.
Goodput job_goodput(const JobReliability& reliability, const CheckpointPlan& checkpoints);

}  // namespace foretoken
