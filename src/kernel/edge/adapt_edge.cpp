#include "kernel/edge/adapt_edge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "kernel/fewshot/cholesky.h"

namespace foretoken {
namespace {

// Of logarithms: devices of the same kind differ by a factor of ten.
constexpr double shared_deviation = 2;
// Of a network whose time is made of quite other families than that of any timed one.
constexpr double unlike_deviation = 0.8;
// Such a network is extrapolated to, and its interval taken so many times as wide.
constexpr double unlike_distance = 0.1, unlike_width = 3;
// The level of a family that was not timed may be off by a factor of 6 (90%).
constexpr double untimed_deviation = 1.1;
// How much further from the mean than the known devices a new one may be.
constexpr std::array spreads = {0.5, 1.0, 2.0};
constexpr std::array noise_deviations = {0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.35};
constexpr int newton_steps = 40;
constexpr double least_step_gain = 1e-6;  // of the logarithm of a probability

constexpr size_t index_of(EdgeFamily family) {
  return static_cast<size_t>(family);
}

std::vector<double> prior_precision(const EdgeLevelPrior& prior) {
  std::vector<double> covariance(edge_families * edge_families, shared_deviation * shared_deviation);
  for (size_t f = 0; f < edge_families; ++f)
    covariance[f * edge_families + f] += prior.deviation[f] * prior.deviation[f];
  return Cholesky(covariance, edge_families).inverse();
}

EdgeLevelPrior with_spread(EdgeLevelPrior prior, double spread) {
  for (double& one : prior.deviation) one *= spread;
  return prior;
}

// The logarithm of what the levels predict, and the share that each family has in it: its gradient.
double log_seconds(const EdgeFamilySeconds& known, const EdgeFamilySeconds& log_level, EdgeFamilySeconds& share) {
  double sum = 0;
  for (size_t f = 0; f < edge_families; ++f) sum += share[f] = known[f] * portable_exp(log_level[f]);
  for (double& one : share) one /= sum;
  return portable_log(sum);
}

double quadratic(std::span<const double> matrix, std::span<const double> vector) {
  double sum = 0;
  for (size_t a = 0; a < edge_families; ++a) {
    for (size_t b = 0; b < edge_families; ++b) sum += vector[a] * matrix[a * edge_families + b] * vector[b];
  }
  return sum;
}

// Half the sum of differences: 0 = the same families in the same shares, 1 = none in common.
double distance(const EdgeFamilySeconds& a, const EdgeFamilySeconds& b) {
  double sum = 0;
  for (size_t f = 0; f < edge_families; ++f) sum += std::abs(a[f] - b[f]) / 2;
  return sum;
}

double largest_share(std::span<const EdgeFamilySeconds> shares, size_t family) {
  double most = 0;
  for (const EdgeFamilySeconds& own : shares) most = std::max(most, own[family]);
  return most;
}

EdgeFamilySeconds less(EdgeFamilySeconds a, const EdgeFamilySeconds& b) {
  for (size_t f = 0; f < edge_families; ++f) a[f] -= b[f];
  return a;
}

double log_posterior(std::span<const EdgeLogTiming> timings, const EdgeFamilySeconds& mean,
                     std::span<const double> precision, double noise, const EdgeFamilySeconds& log_level) {
  double sum = -0.5 * quadratic(precision, less(log_level, mean));
  EdgeFamilySeconds share;
  for (const EdgeLogTiming& timing : timings) {
    const double off = (timing.log_seconds - log_seconds(timing.known, log_level, share)) / noise;
    sum -= 0.5 * off * off + portable_log(noise);
  }
  return sum;
}

// Prior precision and what the timings add to it, by shares; the gradient of the posterior beside it.
std::vector<double> posterior_precision(std::span<const EdgeLogTiming> timings, const EdgeFamilySeconds& mean,
                                        std::span<const double> precision, double noise,
                                        const EdgeFamilySeconds& log_level, std::vector<double>& gradient) {
  std::vector<double> matrix(precision.begin(), precision.end());
  gradient.assign(edge_families, 0);
  const EdgeFamilySeconds from_mean = less(log_level, mean);
  for (size_t a = 0; a < edge_families; ++a) {
    for (size_t b = 0; b < edge_families; ++b) gradient[a] -= precision[a * edge_families + b] * from_mean[b];
  }
  EdgeFamilySeconds share;
  for (const EdgeLogTiming& timing : timings) {
    const double off = timing.log_seconds - log_seconds(timing.known, log_level, share);
    for (size_t a = 0; a < edge_families; ++a) {
      gradient[a] += share[a] * off / (noise * noise);
      for (size_t b = 0; b < edge_families; ++b) {
        matrix[a * edge_families + b] += share[a] * share[b] / (noise * noise);
      }
    }
  }
  return matrix;
}

// Gauss-Newton steps, halved until they climb.
EdgeFamilySeconds most_likely(std::span<const EdgeLogTiming> timings, const EdgeFamilySeconds& mean,
                              std::span<const double> precision, double noise) {
  EdgeFamilySeconds log_level = mean, share;
  double start = 0;
  for (const EdgeLogTiming& timing : timings) {
    start += (timing.log_seconds - log_seconds(timing.known, mean, share)) / static_cast<double>(timings.size());
  }
  for (double& one : log_level) one += start;
  double best = log_posterior(timings, mean, precision, noise, log_level);
  std::vector<double> gradient;
  for (int step = 0; step < newton_steps; ++step) {
    const Cholesky factor(posterior_precision(timings, mean, precision, noise, log_level, gradient), edge_families);
    const std::vector<double> direction = factor.solve(gradient);
    if (dot(gradient, direction) < 2 * least_step_gain) break;  // what the step promises
    bool climbs = false;
    for (double length = 1; length > 1e-4 && !climbs; length /= 2) {
      EdgeFamilySeconds next = log_level;
      for (size_t f = 0; f < edge_families; ++f) next[f] += length * direction[f];
      const double value = log_posterior(timings, mean, precision, noise, next);
      if (value <= best + least_step_gain) continue;
      climbs = true;
      best = value;
      log_level = next;
    }
    if (!climbs) break;
  }
  return log_level;
}

Estimate from_logarithms(double mean, double variance) {
  const double half = normal_half_width_90 * std::sqrt(variance);
  return {.value = portable_exp(mean),
          .low = portable_exp(mean - half),
          .high = portable_exp(mean + half),
          .kind = Confidence::interpolated};
}

}  // namespace

const EdgeLevelPriors& measured_level_priors() {
  // Joined: an assumption, as ONNX Runtime (0 by definition) is the only such device that was swept. Apart: from ten.
  static constexpr EdgeLevelPriors priors = {
      .joined = {.mean = {0, 0, 0, 0, 0, 0, 0}, .deviation = {0.6, 0.9, 0.6, 0.8, 1.5, 1.5, 2}},
      .apart = {.mean = {-0.34, -0.39, -0.34, 0.73, 5.39, 2.98, 4.24},
                .deviation = {0.63, 0.56, 0.63, 0.45, 2.08, 2.88, 2.84}}};
  return priors;
}

std::string_view edge_family_name(EdgeFamily family) {
  constexpr std::array<std::string_view, edge_families> names = {"convolution", "depthwise", "product", "tensor",
                                                                 "setup",       "dispatch",  "call"};
  return names[index_of(family)];
}

EdgeFamily edge_family(EdgeKernelKind kind) {
  switch (kind) {
    case EdgeKernelKind::convolution:
    case EdgeKernelKind::int8_convolution:
      return EdgeFamily::convolution;
    case EdgeKernelKind::depthwise:
    case EdgeKernelKind::int8_depthwise:
      return EdgeFamily::depthwise;
    case EdgeKernelKind::linear:
    case EdgeKernelKind::gemv:
    case EdgeKernelKind::batched_matmul:
    case EdgeKernelKind::int8_linear:
    case EdgeKernelKind::int8_gemv:
    case EdgeKernelKind::int4_linear:
    case EdgeKernelKind::int4_gemv:
      return EdgeFamily::product;
    case EdgeKernelKind::empty:
      return EdgeFamily::call;
    default:
      return EdgeFamily::tensor;
  }
}

void add_family_seconds(EdgeFamilySeconds& sum, const EdgePredictor& known, const EdgeKernel& kernel, double count) {
  const double all = known.kernel_seconds_in_model(kernel).value;
  const double dispatch = std::min(known.dispatch_seconds(kernel), all);
  const EdgeFamily family = edge_family(kernel.kind);
  sum[index_of(multiplies(kernel.kind) ? EdgeFamily::setup : EdgeFamily::dispatch)] += count * dispatch;
  sum[index_of(family)] += count * (all - dispatch);
}

void add_call_seconds(EdgeFamilySeconds& sum, const EdgePredictor& known) {
  sum[index_of(EdgeFamily::call)] += known.kernel_seconds({.kind = EdgeKernelKind::empty}).value;
}

AdaptedEdge::AdaptedEdge(std::span<const EdgeTiming> timings, const EdgeLevelPriors& priors) {
  ensure(!timings.empty(), "a device is adapted from timings");
  for (const bool joins : {true, false}) {
    std::vector<EdgeLogTiming> own;
    for (const EdgeTiming& timing : timings) {
      own.push_back(
          {.known = joins ? timing.known.joined : timing.known.apart, .log_seconds = portable_log(timing.seconds)});
    }
    const EdgeLevelPrior& prior = joins ? priors.joined : priors.apart;
    for (const double spread : spreads) {
      for (const double noise : noise_deviations) add_hypothesis(joins, own, with_spread(prior, spread), noise);
    }
  }
  const auto heavier = [](const Hypothesis& a, const Hypothesis& b) { return a.weight < b.weight; };
  const double most = std::ranges::max_element(hypotheses_, heavier)->weight;
  double sum = 0;
  for (Hypothesis& own : hypotheses_) sum += own.weight = portable_exp(own.weight - most);
  for (Hypothesis& own : hypotheses_) own.weight /= sum;
}

void AdaptedEdge::add_hypothesis(bool joins, std::span<const EdgeLogTiming> timings, const EdgeLevelPrior& prior,
                                 double noise) {
  const std::vector<double> precision = prior_precision(prior);
  Hypothesis own{.joins = joins, .noise = noise, .log_level = most_likely(timings, prior.mean, precision, noise)};
  std::vector<double> gradient;
  const Cholesky posterior(posterior_precision(timings, prior.mean, precision, noise, own.log_level, gradient),
                           edge_families);
  const std::vector<double> covariance = posterior.inverse();
  std::ranges::copy(covariance, own.covariance.begin());
  // Laplace's approximation of how likely the hypothesis makes the timings, as a logarithm.
  const double prior_determinant = Cholesky({precision.begin(), precision.end()}, edge_families).log_determinant();
  own.weight = log_posterior(timings, prior.mean, precision, noise, own.log_level) +
               0.5 * (prior_determinant - posterior.log_determinant());
  for (const EdgeLogTiming& timing : timings) {
    own.timed_shares.emplace_back();
    log_seconds(timing.known, own.log_level, own.timed_shares.back());
  }
  hypotheses_.push_back(own);
}

Estimate AdaptedEdge::seconds(const EdgeKnownTime& known) const {
  double mean = 0, square = 0, untimed_square = 0, distance_of_all = 0, untimed_of_all = 0;
  EdgeFamilySeconds share;
  for (const Hypothesis& own : hypotheses_) {
    const double one = log_seconds(own.joins ? known.joined : known.apart, own.log_level, share);
    double unlike = 1;
    for (const EdgeFamilySeconds& timed : own.timed_shares) unlike = std::min(unlike, distance(share, timed));
    double untimed = 0;
    for (size_t f = 0; f < edge_families; ++f) {
      if (largest_share(own.timed_shares, f) < least_timed_share) untimed += share[f];
    }
    distance_of_all += own.weight * std::max(unlike, untimed);
    untimed_of_all += own.weight * untimed;
    // What was not timed is unlike anything timed: the same doubt, which counts below.
    unlike = std::max(0.0, unlike - untimed) * unlike_deviation;
    untimed *= untimed_deviation;
    mean += own.weight * one;
    square += own.weight * (one * one + quadratic(own.covariance, share) + own.noise * own.noise + unlike * unlike);
    untimed_square += own.weight * untimed * untimed;
  }
  const bool is_far = distance_of_all > unlike_distance;
  // What was timed tells less of other networks; what was not timed at all is as unknown as before, and no more.
  const double timed = 1 - untimed_of_all;
  const double widening = is_far ? 1 + (unlike_width * unlike_width - 1) * timed * timed : 1;
  Estimate estimate = from_logarithms(mean, std::max((square - mean * mean) * widening, untimed_square));
  if (is_far) estimate.kind = Confidence::extrapolated;
  return estimate;
}

Estimate AdaptedEdge::level(EdgeFamily family) const {
  const size_t f = index_of(family);
  double mean = 0, square = 0;
  for (const Hypothesis& own : hypotheses_) {
    mean += own.weight * own.log_level[f];
    square += own.weight * (own.log_level[f] * own.log_level[f] + own.covariance[f * edge_families + f]);
  }
  const double least = timed_share(family) < least_timed_share ? untimed_deviation * untimed_deviation : 0;
  return from_logarithms(mean, std::max(square - mean * mean, least));
}

double AdaptedEdge::timed_share(EdgeFamily family) const {
  double sum = 0;
  for (const Hypothesis& own : hypotheses_) sum += own.weight * largest_share(own.timed_shares, index_of(family));
  return sum;
}

std::vector<EdgeFamily> AdaptedEdge::untimed() const {
  std::vector<EdgeFamily> families;
  for (size_t f = 0; f < edge_families; ++f) {
    const auto family = static_cast<EdgeFamily>(f);
    if (timed_share(family) < least_timed_share) families.push_back(family);
  }
  return families;
}

double AdaptedEdge::joins() const {
  double sum = 0;
  for (const Hypothesis& own : hypotheses_) sum += own.joins ? own.weight : 0;
  return sum;
}

EdgePredictor adapted_predictor(const EdgePredictor& known, const AdaptedEdge& adapted) {
  EdgePredictor own = known;
  const auto level = [&](EdgeFamily family) { return adapted.level(family).value; };
  for (auto& [kind, prices] : own.kinds) {
    const Estimate work = adapted.level(edge_family(kind));
    const EdgeFamily first = known.calls || kind == EdgeKernelKind::empty ? EdgeFamily::call
                             : multiplies(kind)                           ? EdgeFamily::setup
                                                                          : EdgeFamily::dispatch;
    for (size_t i = 0; i < prices.prices_ns.size(); ++i) prices.prices_ns[i] *= i == 0 ? level(first) : work.value;
    prices.half_width = std::max(prices.half_width, portable_log(work.high / work.value));
  }
  if (own.calls) {
    own.calls->node_ns *= level(EdgeFamily::dispatch);
    own.calls->setup_ns =
        (known.calls->node_ns + known.calls->setup_ns) * level(EdgeFamily::setup) - own.calls->node_ns;
    own.calls->copy_near_ns *= level(EdgeFamily::tensor);
    own.calls->copy_far_ns *= level(EdgeFamily::tensor);
  }
  own.device = "adapted from " + known.device;
  own.host_spread = 0;  // the timings are those of the device itself
  own.source = "levels from timings of another device; prior: " + known.source;
  if (adapted.joins() < 0.5) own.runtime = "eager";
  return own;
}

double leave_one_out_mape(std::span<const EdgeTiming> timings) {
  ensure(timings.size() > 1, "a timing is predicted from others");
  double sum = 0;
  for (size_t left = 0; left < timings.size(); ++left) {
    std::vector<EdgeTiming> others(timings.begin(), timings.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left));
    const double predicted = AdaptedEdge(others).seconds(timings[left].known).value;
    sum += std::abs(predicted / timings[left].seconds - 1);
  }
  return 100 * sum / static_cast<double>(timings.size());
}

}  // namespace foretoken
