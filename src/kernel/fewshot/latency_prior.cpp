#include "kernel/fewshot/latency_prior.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "kernel/fewshot/cholesky.h"

namespace foretoken {
namespace {

// How strongly a plain cost may add to what the known devices say, against one standardised feature in all.
constexpr double cost_strength = 5;

}  // namespace

PriorOdds even_odds() {
  PriorOdds odds;
  odds.noise.fill(1.0 / noise_levels.size());
  odds.residual.fill(1.0 / residual_levels.size());
  for (auto& by_spread : odds.centre) by_spread.fill(1.0 / (centre_kinds * spread_levels.size()));
  return odds;
}

bool LatencyPrior::knows_family(std::string_view family) const {
  return std::any_of(devices.begin(), devices.end(), [&](const KnownDevice& known) { return known.family == family; });
}

LatencyPrior without_devices(const LatencyPrior& prior, const std::function<bool(const KnownDevice&)>& withheld) {
  LatencyPrior rest = prior;
  std::erase_if(rest.devices, withheld);
  return rest;
}

PriorBasis::PriorBasis(const LatencyPrior& prior) : means_(prior.feature_means) {
  ensure(!prior.devices.empty(), "a prior knows devices");
  for (const double scale : prior.feature_scales) inverse_scales_.push_back(scale > 0 ? 1 / scale : 0);
  std::map<std::string, double> family_sizes;
  for (const KnownDevice& known : prior.devices) family_sizes[known.family] += 1;
  const auto families = static_cast<double>(family_sizes.size());

  centres_.push_back({.name = "average", .weights = std::vector<double>(means_.size())});
  for (const KnownDevice& known : prior.devices) {
    const double share = 1 / (families * family_sizes[known.family]);
    centres_.push_back({.name = known.name, .kind = CentreKind::device, .share = share, .weights = known.weights});
    for (size_t f = 0; f < means_.size(); ++f) centres_[0].weights[f] += share * known.weights[f];
  }
  const std::vector<std::string> names = prior.space->feature_names();
  for (size_t f = 0; f < names.size(); ++f) {
    if (names[f].starts_with("log_")) costs_.push_back(f);
  }
  for (const size_t cost : costs_) {
    Centre centre{.name = names[cost],
                  .kind = CentreKind::cost,
                  .share = 1.0 / static_cast<double>(costs_.size()),
                  .weights = std::vector<double>(means_.size())};
    centre.weights[cost] = 1;
    centres_.push_back(std::move(centre));
  }
}

Projection PriorBasis::project(std::span<const double> features) const {
  ensure(features.size() == means_.size(), "features are those of the prior's space");
  std::vector<double> centred(features.size());
  for (size_t f = 0; f < centred.size(); ++f) centred[f] = features[f] - means_[f];
  Projection projection;
  for (const Centre& centre : centres_) {
    projection.centres.push_back(dot(centre.weights, centred));
    if (centre.kind != CentreKind::device) continue;
    projection.spread.push_back(std::sqrt(centre.share) * (projection.centres.back() - projection.centres.front()));
  }
  const double unit = 1 / std::sqrt(static_cast<double>(centred.size()));
  for (size_t f = 0; f < centred.size(); ++f) projection.residual.push_back(unit * centred[f] * inverse_scales_[f]);
  const double cost_unit = costs_.empty() ? 0 : cost_strength / std::sqrt(static_cast<double>(costs_.size()));
  for (const size_t cost : costs_) projection.residual.push_back(cost_unit * centred[cost]);
  return projection;
}

}  // namespace foretoken
