#include "kernel/fewshot/fit_prior.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "kernel/fewshot/linear_fit.h"

namespace foretoken {
namespace {

constexpr double weight_penalty = 3;  // rows; other strengths were not tried

// Learning the odds.
constexpr size_t odds_draws = 4, odds_timings = 10, odds_queries = 40;
constexpr int odds_rounds = 30;
constexpr double pseudo_count = 5;  // keeps every hypothesis possible

void describe_features(LatencyPrior& prior, const ArchitectureTable& architectures) {
  const size_t features = architectures.features.front().size();
  const auto count = static_cast<double>(architectures.features.size());
  prior.feature_means.assign(features, 0);
  prior.feature_scales.assign(features, 0);
  for (const std::vector<double>& row : architectures.features) {
    for (size_t f = 0; f < features; ++f) prior.feature_means[f] += row[f] / count;
  }
  for (const std::vector<double>& row : architectures.features) {
    for (size_t f = 0; f < features; ++f) {
      const double error = row[f] - prior.feature_means[f];
      prior.feature_scales[f] += error * error / count;
    }
  }
  constexpr double least_scale = 1e-6;
  for (double& scale : prior.feature_scales) scale = scale > least_scale * least_scale ? std::sqrt(scale) : 0;
}

// One draw of timings of a device that the prior does not see.
struct OddsTrial {
  std::shared_ptr<const LatencyPrior> prior;  // without the device's family; shared by its draws
  double weight = 0;                          // families count alike
  std::vector<Timing> timings, queries;
  std::vector<HypothesisCell> cells;
};

struct OddsCounts {
  PriorOdds odds{};
  double total = 0;

  OddsCounts() {
    odds = even_odds();
    for (double& value : odds.noise) value *= pseudo_count;
    for (double& value : odds.residual) value *= pseudo_count;
    for (auto& by_spread : odds.centre) {
      for (double& value : by_spread) value *= pseudo_count;
    }
    total = pseudo_count;
  }

  PriorOdds shares() const {
    PriorOdds result = odds;
    for (double& value : result.noise) value /= total;
    for (double& value : result.residual) value /= total;
    for (auto& by_spread : result.centre) {
      for (double& value : by_spread) value /= total;
    }
    return result;
  }
};

// Adds to `counts` how likely each hypothesis is in a trial under the odds so far.
void expect(const OddsTrial& trial, const PriorOdds& odds, OddsCounts& counts) {
  const PriorBasis basis(*trial.prior);
  const std::span<const PriorBasis::Centre> centres = basis.centres();
  std::vector<double> weights;
  double most = -INFINITY;
  for (const HypothesisCell& cell : trial.cells) {
    for (size_t c = 0; c < centres.size(); ++c) {
      weights.push_back(cell.log_evidence[c] + log_odds(odds, cell, centres[c]));
      most = std::max(most, weights.back());
    }
  }
  double sum = 0;
  for (double& weight : weights) {
    weight = portable_exp(weight - most);
    sum += weight;
  }
  size_t next = 0;
  for (const HypothesisCell& cell : trial.cells) {
    for (const PriorBasis::Centre& centre : centres) {
      const double share = trial.weight * weights[next++] / sum;
      counts.odds.noise[cell.noise] += share;
      counts.odds.residual[cell.residual] += share;
      counts.odds.centre[static_cast<size_t>(centre.kind)][cell.spread] += share;
    }
  }
  counts.total += trial.weight;
}

std::vector<OddsTrial> make_trials(const LatencyPrior& prior, const PriorFit& fit, const LatencyTable& table) {
  std::map<std::string, double> family_sizes;
  for (const KnownDevice& known : prior.devices) family_sizes[known.family] += 1;
  std::vector<OddsTrial> trials;
  for (size_t d = 0; d < table.devices.size(); ++d) {
    const DeviceLatencies& latencies = table.devices[d];
    const auto known = std::find_if(prior.devices.begin(), prior.devices.end(),
                                    [&](const KnownDevice& one) { return one.name == latencies.device; });
    if (known == prior.devices.end()) continue;
    const auto rest = std::make_shared<const LatencyPrior>(
        without_devices(prior, [&](const KnownDevice& other) { return other.family == known->family; }));
    if (rest->devices.empty()) continue;
    const PriorBasis basis(*rest);
    RandomStream stream(0, "odds " + latencies.device);
    for (size_t draw = 0; draw < odds_draws; ++draw) {
      OddsTrial trial{.prior = rest, .weight = 1 / (family_sizes[known->family] * odds_draws)};
      const std::vector<size_t> drawn = draw_some(fit.positions[d], odds_timings + odds_queries, stream);
      for (size_t i = 0; i < drawn.size(); ++i) {
        (i < odds_timings ? trial.timings : trial.queries).push_back(timing_at(table, latencies, drawn[i]));
      }
      trial.cells = weigh_hypotheses(basis, project_timings(basis, trial.timings));
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

// Deviations within which 90% of the queries of all trials lie; trials count by their weight.
double learn_interval(const std::vector<OddsTrial>& trials, const PriorOdds& odds) {
  std::vector<std::pair<double, double>> deviations;  // with weight
  double total = 0;
  for (const OddsTrial& trial : trials) {
    LatencyPrior prior = *trial.prior;
    prior.odds = odds;
    const AdaptedDevice device(prior, trial.timings);
    for (const Timing& query : trial.queries) {
      const AdaptedDevice::LogEstimate estimate = device.log_milliseconds(device.basis().project(query.features));
      deviations.emplace_back(std::abs(portable_log(query.milliseconds) - estimate.value) / estimate.deviation,
                              trial.weight);
      total += trial.weight;
    }
  }
  std::sort(deviations.begin(), deviations.end());
  double below = 0;
  for (const auto& [deviation, weight] : deviations) {
    below += weight;
    if (below >= 0.9 * total) return deviation;
  }
  throw InternalError("nine tenths of the weight lie below the largest deviation");
}

}  // namespace

Timing timing_at(const LatencyTable& table, const DeviceLatencies& latencies, size_t position) {
  return {.features = table.architectures.features[latencies.rows[position]],
          .milliseconds = latencies.milliseconds[position]};
}

std::vector<size_t> draw_some(std::vector<size_t> from, size_t count, RandomStream& stream) {
  count = std::min(count, from.size());
  for (size_t i = 0; i < count; ++i) std::swap(from[i], from[i + stream.below(from.size() - i)]);
  from.resize(count);
  return from;
}

PriorFit fit_devices(const ArchitectureSpace& space, const LatencyTable& table, const PriorFitOptions& options) {
  PriorFit fit;
  fit.prior.space = &space;
  fit.prior.source = options.source;
  fit.prior.fitted_on = options.date;
  describe_features(fit.prior, table.architectures);
  std::unique_ptr<LinearFitter> fitter;  // devices with the same rows share one
  std::vector<size_t> fitter_rows;
  for (const DeviceLatencies& latencies : table.devices) {
    const UsableRows usable = usable_rows(space, table.architectures, latencies);
    std::vector<size_t> positions, rows;
    std::vector<double> targets;
    for (const size_t position : usable.positions) {
      if (options.rows && !options.rows->contains(latencies.ids[position])) continue;
      positions.push_back(position);
      rows.push_back(latencies.rows[position]);
      targets.push_back(portable_log(latencies.milliseconds[position]));
    }
    fit.positions.push_back(positions);
    if (rows.size() < odds_timings + odds_queries) continue;
    if (!fitter || rows != fitter_rows) {
      fitter = std::make_unique<LinearFitter>(table.architectures.features, rows, weight_penalty);
      fitter_rows = rows;
    }
    const LinearModel model = fitter->fit(targets);
    double squares = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      const double error = targets[r] - model.at(table.architectures.features[rows[r]]);
      squares += error * error;
    }
    fit.prior.devices.push_back({.name = latencies.device,
                                 .family = device_family(latencies.device),
                                 .weights = model.weights,
                                 .noise = std::sqrt(squares / static_cast<double>(rows.size())),
                                 .rows = rows.size(),
                                 .failed_rows = usable.failed,
                                 .sum_of_blocks = usable.sum_of_blocks});
  }
  return fit;
}

void learn_odds(LatencyPrior& prior, const PriorFit& fit, const LatencyTable& table) {
  const std::vector<OddsTrial> trials = make_trials(prior, fit, table);
  if (trials.empty()) return;  // one family alone says nothing about others: odds stay even
  for (int round = 0; round < odds_rounds; ++round) {
    OddsCounts counts;
    for (const OddsTrial& trial : trials) expect(trial, prior.odds, counts);
    prior.odds = counts.shares();
  }
  prior.interval_factor = learn_interval(trials, prior.odds);
}

LatencyPrior fit_latency_prior(const ArchitectureSpace& space, const LatencyTable& table,
                               const PriorFitOptions& options) {
  PriorFit fit = fit_devices(space, table, options);
  constexpr size_t least_devices = 2;
  if (fit.prior.devices.size() < least_devices) {
    throw InputError(
        {.source = "latencies",
         .value = fmt::format("{} devices", fit.prior.devices.size()),
         .expected = fmt::format("two devices or more with {} latencies or more each", odds_timings + odds_queries)});
  }
  learn_odds(fit.prior, fit, table);
  return fit.prior;
}

}  // namespace foretoken
