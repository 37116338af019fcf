// A new device from a few timings: the prior, weighed by how well each of its hypotheses explains them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "kernel/fewshot/cholesky.h"
#include "kernel/fewshot/latency_prior.h"

namespace foretoken {

struct Timing {
  std::vector<double> features;
  double milliseconds = 0;
};

// Hypotheses that share a covariance, and how well each centre explains the timings under it. In the logarithm, a
// latency is centre + level + Gaussian process: any level, `spread` times the differences of the known devices,
// `residual` times features, and noise. C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning"
// (2006), equations 2.25, 2.26 and 2.30.
struct HypothesisCell {
  size_t noise = 0, spread = 0, residual = 0;  // of the levels of latency_prior.h
  Cholesky factor;
  std::vector<std::vector<double>> coefficients;  // by centre and timing
  std::vector<double> log_evidence;               // by centre
};

// Timings as the prior sees them.
struct ProjectedTimings {
  std::vector<Projection> projections;
  std::vector<double> log_milliseconds;  // less their mean
  double level = 0;                      // that mean
};
ProjectedTimings project_timings(const PriorBasis& basis, std::span<const Timing> timings);
std::vector<HypothesisCell> weigh_hypotheses(const PriorBasis& basis, const ProjectedTimings& timings);

// Covariance of two architectures without noise.
double prior_covariance(const Projection& a, const Projection& b, double spread_squared, double residual_squared);

// Odds of a centre in a cell, as a logarithm.
double log_odds(const PriorOdds& odds, const HypothesisCell& cell, const PriorBasis::Centre& centre);

class AdaptedDevice {
 public:
  // At least one timing, or nothing would fix the level.
  AdaptedDevice(const LatencyPrior& prior, std::span<const Timing> timings);

  // One timing of this architecture, with a 90% interval that includes the noise of timing.
  Estimate milliseconds(std::span<const double> features) const;

  struct LogEstimate {
    double value = 0, deviation = 0;
  };
  LogEstimate log_milliseconds(const Projection& projection) const;

  // How much the answer leans on each centre; the largest first, those under 1% left out.
  struct Resemblance {
    std::string name;
    double share = 0;
  };
  std::vector<Resemblance> resembles() const;

  // Squared levels, averaged over hypotheses.
  struct Levels {
    double noise = 0, spread = 0, residual = 0;
  };
  Levels squared_levels() const;

  const PriorBasis& basis() const { return basis_; }
  const ProjectedTimings& timings() const { return timings_; }

 private:
  struct Weighed {
    size_t centre = 0;
    double weight = 0;
  };
  struct WeighedCell {
    HypothesisCell cell;
    std::vector<Weighed> centres;
  };

  PriorBasis basis_;
  double interval_factor_;
  ProjectedTimings timings_;
  std::vector<WeighedCell> cells_;  // weights over all centres sum to one
};

// Mean error in percent of each timing predicted from the others; two timings or more.
double leave_one_out_mape(const LatencyPrior& prior, std::span<const Timing> timings);

// Timings that look failed: under a fifth of their median and under a third of what the others predict.
std::vector<size_t> failed_timings(const LatencyPrior& prior, std::span<const Timing> timings);

}  // namespace foretoken
