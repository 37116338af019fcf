// A campaign of measurements on one machine: what its host and software add to kernel times, operator by operator,
// learned from a few points each.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/estimate.h"

namespace foretoken {

// measured = before + max(scale x kernel, after), the maximum a soft one (forms/eager_form.h says why).
struct CampaignEffect {
  double before = 0, after = 0;  // seconds
  double scale = 1;              // of the predicted kernel time: how far this kernel is from the one predicted
  double half_width = 0;         // of the 90% interval, as a logarithm
  size_t points = 0;             // it was fitted on
  bool operator==(const CampaignEffect&) const = default;
};

struct Campaign {
  std::string source, fitted_on;
  std::map<std::pair<std::string, std::string>, CampaignEffect> effects;  // by device and operator ("eager softmax")
};

double campaign_seconds(const CampaignEffect& effect, double kernel_seconds);
// With the interval of the campaign.
Estimate campaign_estimate(const CampaignEffect& effect, const Estimate& kernel);

struct CampaignPoint {
  double kernel_seconds = 0;  // predicted
  double measured_seconds = 0;
};

// The effect under which the points are likeliest, with a scale near 1 and gaps near 10 us expected beforehand: one
// point already says something. InputError is the caller's business: `points` must not be empty.
CampaignEffect fit_campaign_effect(std::span<const CampaignPoint> points);

// Indices of `count` points spread evenly over the logarithm of predicted time, smallest and largest among them.
std::vector<size_t> spread_points(std::span<const CampaignPoint> points, size_t count);

std::string campaign_json(const Campaign& campaign);
// InputError for what is no campaign of this version.
Campaign parse_campaign(std::string_view text, const std::string& source);
Campaign read_campaign(const std::filesystem::path& path);

}  // namespace foretoken
