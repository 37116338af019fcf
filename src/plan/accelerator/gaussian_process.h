// A smooth function known at a few points, and how sure one can be of it elsewhere.
//
// Matern kernel (nu = 5/2) with one length for each dimension; C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes
// for Machine Learning", MIT Press 2006, algorithm 2.1 and equation 4.17. Plain loops: the same bits on every machine.
#pragma once

#include <span>
#include <vector>

#include "kernel/fewshot/cholesky.h"

namespace foretoken {

class GaussianProcess {
 public:
  struct Guess {
    double mean = 0, deviation = 0;
  };

  // At least one point, all with as many numbers as there are lengths. `noise`: variance of a value, as a share of that
  // of all values; above 0.
  GaussianProcess(std::vector<std::vector<double>> points, std::vector<double> values, std::vector<double> lengths,
                  double noise);

  Guess guess(std::span<const double> point) const;
  double log_likelihood() const { return log_likelihood_; }  // of the values, standardised
  std::span<const double> lengths() const { return lengths_; }

  // Also knows its own guess at the point: kriging believer, for the next of several points (Ginsbourger, Le Riche,
  // Carraro, "Kriging is well-suited to parallelize optimization", 2010).
  GaussianProcess believing(const std::vector<double>& point) const;

 private:
  double covariance(std::span<const double> a, std::span<const double> b) const;
  Cholesky factor() const;

  std::vector<std::vector<double>> points_;
  std::vector<double> values_;
  std::vector<double> lengths_;
  double noise_;
  double mean_ = 0, scale_ = 1;
  Cholesky factor_;
  std::vector<double> weights_;  // covariance^-1 of the standardised values
  double log_likelihood_ = 0;
};

// Lengths that make the values likelier, from those given: each halved and doubled in turn, one round.
GaussianProcess with_better_lengths(const std::vector<std::vector<double>>& points, const std::vector<double>& values,
                                    std::vector<double> lengths, double noise);

// By how much a value below `best` is expected to be found there: D. R. Jones, M. Schonlau, W. J. Welch, "Efficient
// global optimization of expensive black-box functions", J. Global Optimization 13, 1998, equation 15.
double expected_improvement(const GaussianProcess::Guess& guess, double best);

}  // namespace foretoken
