#include "compose/fit_correlation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr double usual = 0.4, pull = 4;  // the pull is that of a normal prior of deviation 1 / sqrt(2 pull)
constexpr size_t fewest_steps = 5;
constexpr int grid = 20;

// Square of the half-width of the sum.
double squared_width(const CorrelationSample& sample, const ErrorCorrelations& correlations) {
  double all = 0, sum = 0;
  for (const CorrelationSample::Form& form : sample.forms) {
    const double within = correlations.within_form(form.name);
    all += form.linear;
    sum += (1 - within) * form.squares + (within - correlations.between) * form.linear * form.linear;
  }
  return sum + correlations.between * all * all;
}

// Less the logarithm of the likelihood, up to a constant.
double surprise(std::span<const CorrelationSample> samples, const ErrorCorrelations& correlations) {
  double sum = pull * (correlations.between - usual) * (correlations.between - usual);
  for (const auto& [form, within] : correlations.within) sum += pull * (within - usual) * (within - usual);
  for (const CorrelationSample& sample : samples) {
    const double square = squared_width(sample, correlations);
    const double off = normal_half_width_90 * sample.error;
    sum += 0.5 * (portable_log(square) + off * off / square);
  }
  return sum;
}

double coverage(std::span<const CorrelationSample> samples, const ErrorCorrelations& correlations) {
  double inside = 0;
  for (const CorrelationSample& sample : samples) {
    if (sample.error * sample.error <= squared_width(sample, correlations)) inside += 1;
  }
  return 100 * inside / static_cast<double>(samples.size());
}

// Tries every value of the grid that keeps `between` the least; whether one was better.
bool improve(std::span<const CorrelationSample> samples, ErrorCorrelations& correlations, double& value,
             bool is_between) {
  const double before = value;
  // Forms in few steps have no value of their own to bound `between`: theirs gives way.
  const auto set = [&](double to) {
    value = to;
    correlations.within_other = std::max(usual, correlations.between);
  };
  double best = surprise(samples, correlations), kept = value;
  for (int i = 0; i <= grid; ++i) {
    set(static_cast<double>(i) / grid);
    const bool fits = is_between ? std::all_of(correlations.within.begin(), correlations.within.end(),
                                               [&](const auto& one) { return one.second >= value; })
                                 : value >= correlations.between;
    if (!fits) continue;
    const double now = surprise(samples, correlations);
    if (now < best - 1e-9) best = now, kept = value;
  }
  set(kept);
  return kept != before;
}

// A sum without width says nothing about how widths add up, and has no likelihood.
std::vector<CorrelationSample> with_width(std::span<const CorrelationSample> samples) {
  std::vector<CorrelationSample> kept;
  for (const CorrelationSample& sample : samples) {
    if (std::any_of(sample.forms.begin(), sample.forms.end(), [](const auto& form) { return form.linear > 0; })) {
      kept.push_back(sample);
    }
  }
  return kept;
}

}  // namespace

CorrelationSample correlation_sample(const StepEstimate& step, double measured_ms, double measured_kernel_ms) {
  CorrelationSample sample;
  double predicted = 0, gaps = 0;
  for (const StageEstimate& stage : step.stages) {
    predicted += stage.kernels.value;
    gaps += stage.time.seconds - stage.time.kernels - stage.time.communication;
  }
  const bool profiled = measured_kernel_ms > 0 && step.dispatch == Dispatch::eager;
  const double measured = profiled ? measured_kernel_ms * 1e-3 : measured_ms * 1e-3 - gaps;
  sample.error = std::abs(measured - predicted);
  const ErrorCorrelations unused;
  KernelSum sum(unused);
  for (const StageEstimate& stage : step.stages) {
    for (const TimedLaunch& timed : stage.launches) {
      sum.add(timed.seconds, error_form(timed.launch.shape, timed.launch.variant));
    }
  }
  const bool above = measured > predicted;
  for (const FormWidths& one : sum.widths()) {
    sample.forms.push_back({.name = std::string(one.form),
                            .linear = above ? one.above : one.below,
                            .squares = above ? one.above_squares : one.below_squares});
  }
  return sample;
}

CorrelationFit fit_correlations(std::span<const CorrelationSample> measured) {
  const std::vector<CorrelationSample> samples = with_width(measured);
  CorrelationFit fit{.steps = samples.size()};
  ErrorCorrelations& correlations = fit.correlations;
  std::map<std::string, size_t> steps;
  for (const CorrelationSample& sample : samples) {
    for (const CorrelationSample::Form& form : sample.forms) ++steps[form.name];
  }
  for (const auto& [form, count] : steps) {
    if (count >= fewest_steps) correlations.within[form] = usual;
  }
  if (correlations.within.empty()) {
    throw InputError({.field = "data",
                      .value = fmt::format("{} steps that can be predicted with an interval", samples.size()),
                      .expected = fmt::format("at least {} with kernels of one form", fewest_steps)});
  }
  fit.independent = coverage(samples, {.within_other = 0, .between = 0});
  fit.alike = coverage(samples, {.within_other = 1, .between = 1});
  correlations.between = 0;
  constexpr int most_rounds = 50;
  bool changed = true;
  for (int round = 0; changed && round < most_rounds; ++round) {
    changed = improve(samples, correlations, correlations.between, true);
    for (auto& [form, within] : correlations.within) changed = improve(samples, correlations, within, false) || changed;
  }
  // Forms that were not seen: as those that were, on average. None of those is below `between`, but the rounded mean of
  // equal values can be.
  double sum = 0;
  for (const auto& [form, within] : correlations.within) sum += within;
  correlations.within_other = std::max(correlations.between, sum / static_cast<double>(correlations.within.size()));
  fit.fitted = coverage(samples, correlations);
  return fit;
}

}  // namespace foretoken
