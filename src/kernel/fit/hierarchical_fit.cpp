#include "kernel/fit/hierarchical_fit.h"

#include <algorithm>
#include <cmath>

// Eigen's vector code fuses multiplications and additions on arm64 only: fits would depend on the machine.
#define EIGEN_DONT_VECTORIZE
#include <Eigen/Dense>

#include "base/error.h"

namespace foretoken {
namespace {

double huber(double error, double scale) {
  return std::sqrt(error * error + scale * scale) - scale;
}

class Solver {
 public:
  Solver(HierarchicalFit& fit, const RowError& error) : fit_(fit), error_(error) {
    for (const FitEffect& effect : fit_.effects) {
      ensure(effect.offsets.size() == fit_.constants, "an effect has one offset per constant");
      start_.push_back(effect.offsets);
    }
  }

  double loss() const {
    double total = penalty();
    for (const FitGroup& group : fit_.groups) {
      const std::vector<double> constants = log_constants(fit_, group.effects);
      double sum = 0;
      for (size_t r = 0; r < group.rows; ++r) {
        int choice = -1;
        sum += huber(error_(group.first_row + r, constants, choice), fit_.huber_scale);
      }
      total += group.weight * sum / static_cast<double>(group.rows);
    }
    return total;
  }

  // One damped Gauss-Newton system at the current point.
  void linearize() {
    const auto size = static_cast<Eigen::Index>(fit_.effects.size() * fit_.constants);
    hessian_ = Eigen::MatrixXd::Zero(size, size);
    gradient_ = Eigen::VectorXd::Zero(size);
    for (const FitGroup& group : fit_.groups) add_group(group);
    const double per_constant = 1.0 / static_cast<double>(fit_.constants);
    for (size_t e = 0; e < fit_.effects.size(); ++e) {
      const FitEffect& effect = fit_.effects[e];
      for (size_t k = 0; k < fit_.constants; ++k) {
        const Eigen::Index i = index(e, k);
        if (effect.fixed) {
          hessian_.row(i).setZero();
          hessian_.col(i).setZero();
          hessian_(i, i) = 1;
          gradient_(i) = 0;
          continue;
        }
        const double target = effect.pull_to_start ? start_[e][k] : 0;
        hessian_(i, i) += 2 * effect.strength * per_constant;
        gradient_(i) += 2 * effect.strength * per_constant * (effect.offsets[k] - target);
      }
    }
  }

  // The step for a damping; the offsets are moved by it.
  void move(double damping) {
    Eigen::MatrixXd damped = hessian_;
    for (Eigen::Index i = 0; i < damped.rows(); ++i) damped(i, i) += damping * (hessian_(i, i) + 1e-9) + 1e-12;
    const Eigen::VectorXd step = damped.ldlt().solve(-gradient_);
    constexpr double longest = 0.7;  // no constant more than doubles in one round
    for (size_t e = 0; e < fit_.effects.size(); ++e) {
      if (fit_.effects[e].fixed) continue;
      for (size_t k = 0; k < fit_.constants; ++k) {
        fit_.effects[e].offsets[k] += std::clamp(step(index(e, k)), -longest, longest);
      }
    }
  }

  std::vector<FitEffect> effects() const { return fit_.effects; }
  void restore(const std::vector<FitEffect>& effects) { fit_.effects = effects; }

 private:
  Eigen::Index index(size_t effect, size_t constant) const {
    return static_cast<Eigen::Index>(effect * fit_.constants + constant);
  }

  double penalty() const {
    double total = 0;
    for (size_t e = 0; e < fit_.effects.size(); ++e) {
      const FitEffect& effect = fit_.effects[e];
      for (size_t k = 0; k < fit_.constants; ++k) {
        const double offset = effect.offsets[k] - (effect.pull_to_start ? start_[e][k] : 0);
        total += effect.strength * offset * offset / static_cast<double>(fit_.constants);
      }
    }
    return total;
  }

  void add_group(const FitGroup& group) {
    const auto constants = static_cast<Eigen::Index>(fit_.constants);
    std::vector<double> at = log_constants(fit_, group.effects);
    Eigen::MatrixXd block = Eigen::MatrixXd::Zero(constants, constants);
    Eigen::VectorXd slope = Eigen::VectorXd::Zero(constants);
    Eigen::VectorXd row_slope(constants);
    constexpr double nudge = 1e-4;
    for (size_t r = 0; r < group.rows; ++r) {
      int choice = -1;
      const double error = error_(group.first_row + r, at, choice);
      for (Eigen::Index k = 0; k < constants; ++k) {
        const double kept = at[static_cast<size_t>(k)];
        at[static_cast<size_t>(k)] = kept + nudge;
        row_slope(k) = (error_(group.first_row + r, at, choice) - error) / nudge;
        at[static_cast<size_t>(k)] = kept;
      }
      // Pseudo-Huber: the weight of a row falls with its error, so that outliers do not steer.
      const double weight = 1 / std::sqrt(error * error + fit_.huber_scale * fit_.huber_scale);
      block.noalias() += weight * row_slope * row_slope.transpose();
      slope.noalias() += weight * error * row_slope;
    }
    const double scale = group.weight / static_cast<double>(group.rows);
    for (const size_t a : group.effects) {
      gradient_.segment(index(a, 0), constants) += scale * slope;
      for (const size_t b : group.effects) {
        hessian_.block(index(a, 0), index(b, 0), constants, constants) += scale * block;
      }
    }
  }

  HierarchicalFit& fit_;
  const RowError& error_;
  std::vector<std::vector<double>> start_;
  Eigen::MatrixXd hessian_;
  Eigen::VectorXd gradient_;
};

}  // namespace

std::vector<double> log_constants(const HierarchicalFit& fit, std::span<const size_t> effects) {
  std::vector<double> sum(fit.constants, 0.0);
  for (const size_t effect : effects) {
    for (size_t k = 0; k < fit.constants; ++k) sum[k] += fit.effects[effect].offsets[k];
  }
  for (size_t k = 0; k < fit.constants; ++k) sum[k] = std::clamp(sum[k], fit.bounds[k].least, fit.bounds[k].most);
  return sum;
}

double solve(HierarchicalFit& fit, const RowError& error, const std::function<void(int, double)>& progress) {
  ensure(fit.bounds.size() == fit.constants, "each constant has bounds");
  Solver solver(fit, error);
  double best = solver.loss();
  double damping = 0.01;
  int slow_rounds = 0;
  for (int round = 0; round < fit.rounds; ++round) {
    solver.linearize();
    const std::vector<FitEffect> before = solver.effects();
    bool improved = false;
    for (int attempt = 0; attempt < 6 && !improved; ++attempt) {
      solver.move(damping);
      const double loss = solver.loss();
      improved = loss < best;
      if (improved) {
        const double gain = (best - loss) / best;
        best = loss;
        damping = std::max(damping / 4, 1e-6);
        if (progress) progress(round + 1, best);
        if (gain < 3e-5 && ++slow_rounds >= 3) return best;
      } else {
        solver.restore(before);
        damping *= 6;
      }
    }
    if (!improved) return best;
  }
  return best;
}

}  // namespace foretoken
