#include "validate/deployment/suggested_load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

struct CandidateLoad {
  int64_t concurrency, input, output;
};
constexpr CandidateLoad candidate_loads[] = {{1, 128, 128},  {1, 2048, 64},   {8, 128, 256},
                                             {8, 2048, 128}, {32, 128, 256},  {32, 2048, 128},
                                             {64, 512, 256}, {128, 128, 256}, {128, 1024, 128}};

// How a load's mean E2E and median TTFT follow the constants, in logarithms.
using Slopes = std::array<ConstantVector, 2>;
constexpr double noise_of_one_run[] = {0.025, 0.09};  // of the two, measured once

std::optional<Slopes> slopes_of(const LoadSpec& load, unsigned thread, const ConstantVector& mean,
                                const std::vector<DeploymentConstant>& used, const SimulateLoad& simulate) {
  Slopes slopes = {};
  try {
    const TimesOfLoad here = simulate(thread, load, mean);
    for (const DeploymentConstant constant : used) {
      const DeploymentConstantKind& kind = deployment_constant_kinds()[static_cast<size_t>(constant)];
      ConstantVector moved = mean;
      const double step = at(moved, constant) + kind.difference <= kind.most ? kind.difference : -kind.difference;
      at(moved, constant) += step;
      const TimesOfLoad there = simulate(thread, load, moved);
      at(slopes[0], constant) = portable_log(there.mean_e2e_ms / here.mean_e2e_ms) / step;
      at(slopes[1], constant) = portable_log(there.median_ttft_ms / here.median_ttft_ms) / step;
    }
  } catch (const InputError&) {
    return std::nullopt;  // requests of these lengths do not fit the engine
  }
  return slopes;
}

// A Kalman update by one number. Returns the nats that it tells.
double narrowed_by(ConstantMatrix& covariance, const ConstantVector& slope, double sd) {
  ConstantVector gain = {};
  double variance = sd * sd;
  for (size_t a = 0; a < deployment_constants; ++a) {
    for (size_t b = 0; b < deployment_constants; ++b) gain[a] += covariance[a][b] * slope[b];
  }
  double explained = 0;
  for (size_t a = 0; a < deployment_constants; ++a) explained += slope[a] * gain[a];
  const double information = 0.5 * portable_log(1 + explained / variance);
  variance += explained;
  for (size_t a = 0; a < deployment_constants; ++a) {
    for (size_t b = 0; b < deployment_constants; ++b) covariance[a][b] -= gain[a] * gain[b] / variance;
  }
  return information;
}

}  // namespace

std::vector<SuggestedLoad> suggest_loads(const ConstantPosterior& posterior,
                                         const std::vector<DeploymentConstant>& used, const SimulateLoad& simulate,
                                         const OnThreads& on_threads) {
  std::vector<SuggestedLoad> loads(std::size(candidate_loads));
  on_threads(std::size(candidate_loads), [&](unsigned thread, size_t i) {
    const CandidateLoad& one = candidate_loads[i];
    const LoadSpec load{.num_prompts = 4 * one.concurrency,
                        .max_concurrency = one.concurrency,
                        .input_len = one.input,
                        .output_len = one.output};
    const std::optional<Slopes> slopes = slopes_of(load, thread, posterior.mean, used, simulate);
    if (!slopes) return;
    ConstantMatrix covariance = posterior.covariance;
    SuggestedLoad& suggested = loads[i];
    suggested = {.max_concurrency = one.concurrency,
                 .input_len = one.input,
                 .output_len = one.output,
                 .num_prompts = std::max<int64_t>(100, 4 * one.concurrency)};
    for (size_t row = 0; row < slopes->size(); ++row)
      suggested.information += narrowed_by(covariance, (*slopes)[row], noise_of_one_run[row]);
    double most = 0;
    for (const DeploymentConstant constant : used) {
      const auto k = static_cast<size_t>(constant);
      const double before = std::sqrt(posterior.covariance[k][k]), after = std::sqrt(std::max(0.0, covariance[k][k]));
      if (before <= 0 || 1 - after / before <= most) continue;
      most = 1 - after / before;
      suggested.narrows = constant;
      suggested.sd_before = before;
      suggested.sd_after = after;
    }
  });
  std::erase_if(loads, [](const SuggestedLoad& load) { return load.information <= 0; });
  std::stable_sort(loads.begin(), loads.end(),
                   [](const SuggestedLoad& a, const SuggestedLoad& b) { return a.information > b.information; });
  constexpr size_t most_suggested = 3;
  if (loads.size() > most_suggested) loads.resize(most_suggested);
  return loads;
}

}  // namespace foretoken
