// How much the time of a training step varies, in closed form (the idea of PRISM, arXiv 2510.15596): serial work adds,
// every synchronisation takes the maximum over its participants.
//
//   unit     kernels between two meetings of a tensor group: normal; the slowest rank counts
//   path     (micro-batches + (stages - 1) / virtual stages) x units: sums of many, so normal
//   devices  the slowest of stages x replicas paths; a persistently slow device stretches all of its path
//   step     devices + communication + the rest, all stretched by noise common to the job, now and then by a stall
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "base/normal_distribution.h"

namespace foretoken {

struct StepPieces {
  double compute_seconds = 0;  // forward and backward of one micro-batch on one stage
  int64_t kernels = 1;         // in compute_seconds
  int64_t meetings = 1;        // of the tensor ranks in compute_seconds: four a layer
  int64_t micro_batches = 1, stages = 1, virtual_stages = 1;
  int64_t tensor_ranks = 1;
  int64_t replicas = 1;  // data x context ranks: they meet once a step
  double exposed_communication_seconds = 0;
  int64_t collectives = 1;   // in exposed_communication_seconds, one after the other
  double other_seconds = 0;  // optimizer, input, host
  // Where the median is known better than from the pieces (step estimates are fitted to medians of measured runs, in
  // which devices did vary): all times are scaled to it.
  std::optional<double> median_seconds;

  int64_t devices() const { return tensor_ranks * stages * replicas; }
  double device_hours(double step_seconds) const;  // that a step takes
};

// Shares of the time they apply to. Medians of runs hide the first three (they are within every measured median, and
// hardly widen the distribution), so these rest on publications; the others are fitted to logs by
// fit_step_variation().
struct VariationModel {
  // Persistent speed of a device: kernels differ by up to 14% over a fleet (arXiv 2510.15596), taken as +-4 deviations.
  double device_spread = 0.0175;
  double kernel_jitter = 0.05;  // one call of a kernel; assumed
  double link_jitter = 0.10;    // one collective on one device's links; assumed
  // Noise the whole job shares, two-sided exponential around the median: p95 / p50 = 1 + 2.3 x above.
  double step_jitter_below = 0.0033, step_jitter_above = 0.0076;
  double stalls_per_device_hour = 0.0033;
  double stall_median = 0.12, stall_sigma = 1.0;  // log-normal, in steps

  // Device-hours of a step in those logs: stalls of shorter and longer steps are extrapolated.
  double fitted_device_hours_least = 1.8, fitted_device_hours_most = 8.6;

  static VariationModel none();
};

// How far the slowest of those that wait for each other is behind, in deviations of one.
struct SlowestParticipants {
  explicit SlowestParticipants(const StepPieces& pieces);
  MeanAndDeviation rank, path, device;
};

class StepTimeDistribution {
 public:
  StepTimeDistribution(const StepPieces& pieces, const VariationModel& model)
      : StepTimeDistribution(pieces, model, SlowestParticipants(pieces)) {}
  // For several models of one step.
  StepTimeDistribution(const StepPieces& pieces, const VariationModel& model, const SlowestParticipants& slowest);

  double mean() const;
  double deviation() const;
  double quantile(double share) const;
  double probability_beyond(double seconds) const;
  double stall_probability() const { return stall_probability_; }  // of at least one in a step

 private:
  double body_below(double seconds) const;

  double body_start_ = 0, cell_ = 0;  // upper edge of the first cell; width. 0 = the body does not vary
  std::vector<double> cumulative_;    // probability up to the upper edge of each cell
  double body_mean_ = 0, body_variance_ = 0;
  double stall_probability_ = 0;
  std::vector<double> stalls_;  // seconds, equally likely
};

struct VariationSource {
  std::string name;
  double median_seconds = 0;  // what it adds to the median
  double p95_seconds = 0;     // what it adds to the distance between median and p95
};

struct StepVariation {
  double mean = 0, deviation = 0;
  double p05 = 0, p50 = 0, p95 = 0, p99 = 0;
  double stall_probability = 0;
  Confidence kind = Confidence::interpolated;
  std::vector<VariationSource> sources;  // each found by leaving it out, so they need not add up
};

StepVariation step_variation(const StepPieces& pieces, const VariationModel& model = {});

}  // namespace foretoken
