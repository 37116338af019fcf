#include "training/scale/step_variation.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/units.h"

namespace foretoken {
namespace {

constexpr int body_cells = 400;
constexpr double ignored_tail = 1e-7;
constexpr int stall_sizes = 20;

// A part of the step that varies around `centre` between low and high of it.
struct VaryingPart {
  double centre = 0, low = 0, high = 0;
  std::function<double(double)> below;  // probability of a deviation from the centre below the argument
};

// The largest of `count` normal values, which lies at `largest` on average.
VaryingPart largest_of(double count, const MeanAndDeviation& largest, double mean, double deviation) {
  const double centre = largest.mean;
  if (deviation == 0) return {.centre = mean};
  const auto z_at = [count](double share) { return normal_quantile(portable_pow(share, 1 / count)); };
  return {.centre = mean + deviation * centre,
          .low = deviation * (z_at(ignored_tail) - centre),
          .high = deviation * (z_at(1 - ignored_tail) - centre),
          .below = [=](double x) { return largest_normal_below(x / deviation + centre, count); }};
}

// Half of the values on either side, each side exponential.
VaryingPart two_sided_exponential(double below_scale, double above_scale) {
  const double reach = -portable_log(ignored_tail);
  return {.centre = 0, .low = -below_scale * reach, .high = above_scale * reach, .below = [=](double x) {
            if (x < 0) return below_scale > 0 ? 0.5 * portable_exp(x / below_scale) : 0;
            return above_scale > 0 ? 1 - 0.5 * portable_exp(-x / above_scale) : 1;
          }};
}

// Probabilities of deviations first * cell, (first + 1) * cell, ...
struct Masses {
  int64_t first = 0;
  std::vector<double> mass{1.0};
};

Masses masses_of(const VaryingPart& part, double cell) {
  if (part.low == part.high) return {};
  const auto first = static_cast<int64_t>(std::floor(part.low / cell));
  const auto last = static_cast<int64_t>(std::ceil(part.high / cell));
  Masses masses{.first = first, .mass = {}};
  double before = 0;
  for (int64_t i = first; i <= last; ++i) {
    const double now = i == last ? 1 : part.below((static_cast<double>(i) + 0.5) * cell);
    masses.mass.push_back(now - before);
    before = now;
  }
  return masses;
}

Masses sum_of(const Masses& a, const Masses& b) {
  Masses sum{.first = a.first + b.first, .mass = std::vector<double>(a.mass.size() + b.mass.size() - 1)};
  for (size_t i = 0; i < a.mass.size(); ++i) {
    for (size_t j = 0; j < b.mass.size(); ++j) sum.mass[i + j] += a.mass[i] * b.mass[j];
  }
  return sum;
}

double path_units(const StepPieces& pieces) {
  return static_cast<double>(pieces.micro_batches) +
         static_cast<double>(pieces.stages - 1) / static_cast<double>(pieces.virtual_stages);
}

double paths_of(const StepPieces& pieces) {
  return static_cast<double>(pieces.stages * pieces.replicas);
}

VaryingPart device_part(const StepPieces& pieces, const VariationModel& model, const SlowestParticipants& slowest) {
  if (pieces.compute_seconds == 0) return {};
  const auto meetings = static_cast<double>(pieces.meetings);
  const double unit = pieces.compute_seconds / meetings;
  const double kernels_of_unit = std::max(1.0, static_cast<double>(pieces.kernels) / meetings);
  const double unit_deviation = unit * model.kernel_jitter / std::sqrt(kernels_of_unit);
  const double units = path_units(pieces) * meetings;
  // Only the micro-batches of its own stage wait for a slow device, not the filling of the others.
  const double slow_device =
      static_cast<double>(pieces.micro_batches) * pieces.compute_seconds * model.device_spread * slowest.device.mean;
  return largest_of(paths_of(pieces), slowest.path, units * (unit + unit_deviation * slowest.rank.mean) + slow_device,
                    std::sqrt(units) * unit_deviation * slowest.rank.deviation);
}

VaryingPart communication_part(const StepPieces& pieces, const VariationModel& model,
                               const SlowestParticipants& slowest) {
  const double exposed = pieces.exposed_communication_seconds;
  const double calls = static_cast<double>(pieces.collectives);
  return largest_of(1, {}, exposed * (1 + model.link_jitter * slowest.device.mean),
                    exposed * model.link_jitter * slowest.device.deviation / std::sqrt(calls));
}

}  // namespace

double StepPieces::device_hours(double step_seconds) const {
  return static_cast<double>(devices()) * step_seconds / seconds_per_hour;
}

VariationModel VariationModel::none() {
  return {.device_spread = 0,
          .kernel_jitter = 0,
          .link_jitter = 0,
          .step_jitter_below = 0,
          .step_jitter_above = 0,
          .stalls_per_device_hour = 0};
}

SlowestParticipants::SlowestParticipants(const StepPieces& pieces) {
  if (pieces.compute_seconds == 0 && pieces.exposed_communication_seconds == 0) return;  // nobody waits
  rank = largest_normal(static_cast<double>(pieces.tensor_ranks));
  path = largest_normal(paths_of(pieces));
  device = largest_normal(static_cast<double>(pieces.devices()));
}

StepTimeDistribution::StepTimeDistribution(const StepPieces& pieces, const VariationModel& model,
                                           const SlowestParticipants& slowest) {
  ensure(pieces.devices() > 0 && pieces.micro_batches > 0 && pieces.meetings > 0, "a step has devices and work");
  const VaryingPart devices = device_part(pieces, model, slowest);
  const VaryingPart communication = communication_part(pieces, model, slowest);
  const double centre = devices.centre + communication.centre + pieces.other_seconds;
  ensure(centre > 0, "a step takes time");
  const VaryingPart noise = two_sided_exponential(centre * model.step_jitter_below, centre * model.step_jitter_above);

  cell_ = (devices.high - devices.low + communication.high - communication.low + noise.high - noise.low) / body_cells;
  Masses body;
  if (cell_ > 0) {
    body = sum_of(sum_of(masses_of(devices, cell_), masses_of(communication, cell_)), masses_of(noise, cell_));
  }
  body_start_ = centre + (static_cast<double>(body.first) + 0.5) * cell_;
  double below = 0, mean_cells = 0, square_cells = 0;
  for (size_t i = 0; i < body.mass.size(); ++i) {
    cumulative_.push_back(below += body.mass[i]);
    const double cells = static_cast<double>(body.first) + static_cast<double>(i);
    mean_cells += body.mass[i] * cells;
    square_cells += body.mass[i] * cells * cells;
  }
  body_mean_ = centre + mean_cells * cell_;
  body_variance_ = (square_cells - mean_cells * mean_cells) * cell_ * cell_;

  // One stall stands for all of a step: its size is scaled by their mean number, so the mean is exact.
  const double stalls = model.stalls_per_device_hour * pieces.device_hours(pieces.median_seconds.value_or(centre));
  if (stalls > 0) {
    stall_probability_ = 1 - portable_exp(-stalls);
    const double number = stalls / stall_probability_;
    const double median = centre * model.stall_median * number;
    // The last of the sizes makes up for what their middles leave out of the tail.
    double rest = stall_sizes * median * portable_exp(0.5 * model.stall_sigma * model.stall_sigma);
    for (int i = 0; i + 1 < stall_sizes; ++i) {
      stalls_.push_back(median * portable_exp(model.stall_sigma * normal_quantile((i + 0.5) / stall_sizes)));
      rest -= stalls_.back();
    }
    stalls_.push_back(rest);
  }

  if (pieces.median_seconds) {
    const double factor = *pieces.median_seconds / quantile(0.5);
    body_start_ *= factor;
    cell_ *= factor;
    body_mean_ *= factor;
    body_variance_ *= factor * factor;
    for (double& stall : stalls_) stall *= factor;
  }
}

double StepTimeDistribution::body_below(double seconds) const {
  if (cell_ == 0) return seconds >= body_start_ ? 1 : 0;
  const double cells = (seconds - body_start_) / cell_;
  if (cells < -1) return 0;
  const double edge = std::floor(cells);
  if (edge + 1 >= static_cast<double>(cumulative_.size())) return 1;
  const double before = edge < 0 ? 0 : cumulative_[static_cast<size_t>(edge)];
  const double after = cumulative_[static_cast<size_t>(edge + 1)];
  return before + (after - before) * (cells - edge);
}

double StepTimeDistribution::probability_beyond(double seconds) const {
  double below = (1 - stall_probability_) * body_below(seconds);
  for (const double stall : stalls_) {
    below += stall_probability_ / static_cast<double>(stalls_.size()) * body_below(seconds - stall);
  }
  return std::clamp(1 - below, 0.0, 1.0);
}

double StepTimeDistribution::quantile(double share) const {
  ensure(share > 0 && share < 1, "a quantile is asked between 0 and 1");
  if (cell_ == 0 && stalls_.empty()) return body_start_;
  double low = body_start_ - cell_;
  double high = body_start_ + cell_ * static_cast<double>(cumulative_.size()) + (stalls_.empty() ? 0 : stalls_.back());
  for (int halving = 0; halving < 40; ++halving) {
    const double middle = 0.5 * (low + high);
    (1 - probability_beyond(middle) < share ? low : high) = middle;
  }
  return high;
}

double StepTimeDistribution::mean() const {
  double stalled = 0;
  for (const double stall : stalls_) stalled += stall;
  return body_mean_ + (stalls_.empty() ? 0 : stall_probability_ * stalled / static_cast<double>(stalls_.size()));
}

double StepTimeDistribution::deviation() const {
  if (stalls_.empty()) return std::sqrt(std::max(0.0, body_variance_));
  double sum = 0, squares = 0;
  for (const double stall : stalls_) {
    sum += stall;
    squares += stall * stall;
  }
  const double share = stall_probability_ / static_cast<double>(stalls_.size());
  return std::sqrt(body_variance_ + share * squares - share * share * sum * sum);
}

StepVariation step_variation(const StepPieces& pieces, const VariationModel& model) {
  const SlowestParticipants slowest(pieces);
  const StepTimeDistribution times(pieces, model, slowest);
  StepVariation variation{.mean = times.mean(),
                          .deviation = times.deviation(),
                          .p05 = times.quantile(0.05),
                          .p50 = times.quantile(0.5),
                          .p95 = times.quantile(0.95),
                          .p99 = times.quantile(0.99),
                          .stall_probability = times.stall_probability(),
                          .sources = {}};
  const double device_hours = pieces.device_hours(variation.p50);
  if (device_hours < model.fitted_device_hours_least || device_hours > model.fitted_device_hours_most) {
    variation.kind = Confidence::extrapolated;
  }

  // What a source adds shows before scaling to a given median, which would put back what is left out.
  StepPieces unscaled = pieces;
  unscaled.median_seconds.reset();
  const StepTimeDistribution all(unscaled, model, slowest);
  const double median = all.quantile(0.5), distance = all.quantile(0.95) - median;
  const double scale = variation.p50 / median;
  const auto add_source = [&](const char* name, auto leave_out) {
    VariationModel rest = model;
    leave_out(rest);
    const StepTimeDistribution others(unscaled, rest, slowest);
    const double others_median = others.quantile(0.5);
    variation.sources.push_back({.name = name,
                                 .median_seconds = scale * (median - others_median),
                                 .p95_seconds = scale * (distance - (others.quantile(0.95) - others_median))});
  };
  add_source("slow devices", [](VariationModel& rest) { rest.device_spread = 0; });
  add_source("kernel jitter", [](VariationModel& rest) { rest.kernel_jitter = 0; });
  add_source("link jitter", [](VariationModel& rest) { rest.link_jitter = 0; });
  add_source("noise of the step", [](VariationModel& rest) { rest.step_jitter_below = rest.step_jitter_above = 0; });
  add_source("stalls", [](VariationModel& rest) { rest.stalls_per_device_hour = 0; });
  return variation;
}

}  // namespace foretoken
