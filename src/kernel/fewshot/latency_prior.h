// What is known about a space of architectures before a device is timed: how the latencies of known devices depend on
// the architecture, and how much a device may differ from them.
//
// The logarithm of a latency is linear in the features of the architecture. Each known device is a vector of weights;
// a new one is thought to lie near one of them, near their average, or near a plain cost (FLOPs, traffic, calls), by an
// amount that the known devices themselves show when each is left out.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/fewshot/architecture_space.h"

namespace foretoken {

// The weights of one known device, over features less their means.
struct KnownDevice {
  std::string name, family;
  std::vector<double> weights;
  double noise = 0;            // deviation of its logarithmic latencies from the weights
  size_t rows = 0;             // latencies it was fitted on
  size_t failed_rows = 0;      // left out as failed measurements
  bool sum_of_blocks = false;  // its latencies were added up from blocks, not measured
};

// How a new device is thought to lie. Every combination is a hypothesis; odds multiply.
inline constexpr std::array<double, 7> noise_levels = {0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32};
inline constexpr std::array<double, 3> spread_levels = {0.1, 0.3, 1};  // of the differences between known devices
inline constexpr std::array<double, 3> residual_levels = {0.006, 0.02, 0.06};  // what no known device has
enum class CentreKind { average, device, cost };
inline constexpr size_t centre_kinds = 3;

struct PriorOdds {
  std::array<double, noise_levels.size()> noise{};
  std::array<double, residual_levels.size()> residual{};
  std::array<std::array<double, spread_levels.size()>, centre_kinds> centre{};  // by kind and spread
};
PriorOdds even_odds();

struct LatencyPrior {
  const ArchitectureSpace* space = nullptr;
  std::vector<double> feature_means, feature_scales;  // scale 0: never varies
  std::vector<KnownDevice> devices;
  PriorOdds odds = even_odds();
  double interval_factor = 1.645;  // deviations that hold 90% of the latencies of devices left out
  std::string source, fitted_on;

  bool knows_family(std::string_view family) const;
};

// A copy without the devices for which `withheld` holds; odds and interval stay.
LatencyPrior without_devices(const LatencyPrior& prior, const std::function<bool(const KnownDevice&)>& withheld);

// An architecture as the prior sees it.
struct Projection {
  std::vector<double> centres;   // logarithmic latency at each centre, up to a level
  std::vector<double> spread;    // differences of the known devices, weighted
  std::vector<double> residual;  // standardised features and costs, weighted
};

// Where a new device may lie, made of a prior.
class PriorBasis {
 public:
  struct Centre {
    std::string name;
    CentreKind kind = CentreKind::average;
    double share = 1;  // among the centres of its kind; families count alike
    std::vector<double> weights;
  };

  explicit PriorBasis(const LatencyPrior& prior);
  std::span<const Centre> centres() const { return centres_; }
  Projection project(std::span<const double> features) const;

 private:
  std::vector<double> means_, inverse_scales_;
  std::vector<Centre> centres_;  // the average first, then the devices, then the costs
  std::vector<size_t> costs_;    // features that are costs
};

// Versioned JSON. Reading refuses a newer version, other features than this program has, and a file whose check values
// it does not reproduce.
std::string latency_prior_json(const LatencyPrior& prior);
LatencyPrior parse_latency_prior(std::string_view text, const std::string& source);
LatencyPrior read_latency_prior(const std::filesystem::path& path);

}  // namespace foretoken
