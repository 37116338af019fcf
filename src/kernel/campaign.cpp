#include "kernel/campaign.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/portable_math.h"
#include "kernel/forms/form_math.h"

namespace foretoken {
namespace {

constexpr int campaign_version = 1;
constexpr size_t largest_file = size_t{4} << 20;
constexpr double usual_gap = 10e-6;
constexpr double sharpness = 6;

// Logarithms of scale, before and after.
using Parameters = std::array<double, 3>;

CampaignEffect effect_of(const Parameters& logs) {
  return {.before = usual_gap * portable_exp(logs[1]),
          .after = usual_gap * portable_exp(logs[2]),
          .scale = portable_exp(logs[0])};
}

// Minus twice the logarithm of the posterior: errors of 5% with long tails, a scale within 35% or so, gaps within a
// factor of three.
double loss(const Parameters& logs, std::span<const CampaignPoint> points) {
  constexpr double noise = 0.05, scale_doubt = 0.3, gap_doubt = 1;
  const auto square = [](double x) { return x * x; };
  const CampaignEffect effect = effect_of(logs);
  double sum = square(logs[0] / scale_doubt) + square(logs[1] / gap_doubt) + square(logs[2] / gap_doubt);
  for (const CampaignPoint& point : points) {
    const double error = portable_log(campaign_seconds(effect, point.kernel_seconds) / point.measured_seconds) / noise;
    sum += 2 * 4 * (std::sqrt(1 + square(error) / 4) - 1);
  }
  return sum;
}

// Ever finer grids around the best point: three dimensions, no derivatives, the same answer everywhere.
Parameters minimize(std::span<const CampaignPoint> points) {
  Parameters best{0, 0, 0}, reach{1, 3, 3};
  double least = loss(best, points);
  constexpr int steps = 8, rounds = 9;
  for (int round = 0; round < rounds; ++round) {
    const Parameters centre = best;
    for (int i = -steps; i <= steps; ++i) {
      for (int j = -steps; j <= steps; ++j) {
        for (int k = -steps; k <= steps; ++k) {
          const Parameters candidate{centre[0] + reach[0] * i / steps, centre[1] + reach[1] * j / steps,
                                     centre[2] + reach[2] * k / steps};
          const double value = loss(candidate, points);
          if (value >= least) continue;
          least = value;
          best = candidate;
        }
      }
    }
    for (double& length : reach) length *= 0.4;
  }
  return best;
}

}  // namespace

double campaign_seconds(const CampaignEffect& effect, double kernel_seconds) {
  return effect.before + soft_maximum(effect.scale * kernel_seconds, effect.after, sharpness);
}

Estimate campaign_estimate(const CampaignEffect& effect, const Estimate& kernel) {
  const double seconds = campaign_seconds(effect, kernel.value), factor = portable_exp(effect.half_width);
  return {.value = seconds, .low = seconds / factor, .high = seconds * factor, .kind = Confidence::interpolated};
}

CampaignEffect fit_campaign_effect(std::span<const CampaignPoint> points) {
  ensure(!points.empty(), "a campaign is fitted on points");
  CampaignEffect result = effect_of(minimize(points));
  result.points = points.size();
  // Each point predicted from the others; the largest of a handful of errors stands for the 90% quantile.
  constexpr double least_half_width = 0.12;
  result.half_width = least_half_width;
  for (size_t left_out = 0; left_out < points.size() && points.size() > 1; ++left_out) {
    std::vector<CampaignPoint> others(points.begin(), points.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    const double seconds = campaign_seconds(effect_of(minimize(others)), points[left_out].kernel_seconds);
    result.half_width =
        std::max(result.half_width, std::abs(portable_log(seconds / points[left_out].measured_seconds)));
  }
  return result;
}

std::vector<size_t> spread_points(std::span<const CampaignPoint> points, size_t count) {
  std::vector<size_t> order(points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return points[a].kernel_seconds < points[b].kernel_seconds; });
  if (count >= order.size()) return order;
  const auto place = [&](size_t index) { return portable_log(points[index].kernel_seconds); };
  std::vector<size_t> chosen;
  std::vector<bool> taken(points.size(), false);
  for (size_t i = 0; i < count; ++i) {
    const double low = place(order.front()), high = place(order.back());
    const double target =
        count == 1 ? (low + high) / 2 : low + (high - low) * static_cast<double>(i) / static_cast<double>(count - 1);
    size_t nearest = order.size();
    for (const size_t index : order) {
      if (taken[index]) continue;
      if (nearest == order.size() || std::abs(place(index) - target) < std::abs(place(nearest) - target))
        nearest = index;
    }
    taken[nearest] = true;
    chosen.push_back(nearest);
  }
  return chosen;
}

std::string campaign_json(const Campaign& campaign) {
  Json effects = Json::array();
  for (const auto& [key, effect] : campaign.effects) {
    effects.push(Json::object({{"device", key.first},
                               {"operator", key.second},
                               {"before_us", effect.before * 1e6},
                               {"after_us", effect.after * 1e6},
                               {"scale", effect.scale},
                               {"half_width", effect.half_width},
                               {"points", effect.points}}));
  }
  return Json::object({{"kind", "campaign"},
                       {"version", campaign_version},
                       {"source", campaign.source},
                       {"fitted_on", campaign.fitted_on},
                       {"effects", effects}})
             .dump() +
         "\n";
}

Campaign parse_campaign(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, {.max_bytes = largest_file});
  const JsonView view(document, source);
  view.allow_only({"kind", "version", "source", "fitted_on", "effects"});
  if (view.at("kind").string() != "campaign") view.at("kind").fail("campaign, as `foretoken fit campaign` writes it");
  view.at("version").integer({.least = 1, .most = campaign_version});
  Campaign campaign{.source = view.at("source").string(), .fitted_on = view.at("fitted_on").string(), .effects = {}};
  for (const JsonView& entry : view.at("effects").items()) {
    entry.allow_only({"device", "operator", "before_us", "after_us", "scale", "half_width", "points"});
    const auto [place, is_new] = campaign.effects.emplace(
        std::pair(entry.at("device").string(), entry.at("operator").string()),
        CampaignEffect{.before = entry.at("before_us").number({.least = 0, .most = 1e6}) * 1e-6,
                       .after = entry.at("after_us").number({.least = 0, .most = 1e6}) * 1e-6,
                       .scale = entry.at("scale").number({.least = 1e-3, .most = 1e3}),
                       .half_width = entry.at("half_width").number({.least = 0, .most = 10}),
                       .points = static_cast<size_t>(entry.at("points").integer({.least = 1}))});
    if (!is_new) entry.fail("each device and operator once");
  }
  return campaign;
}

Campaign read_campaign(const std::filesystem::path& path) {
  return parse_campaign(read_file(path, largest_file), path.string());
}

}  // namespace foretoken
