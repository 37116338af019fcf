#include "kernel/campaign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::campaign_test {

using testing::HasSubstr;

std::vector<CampaignPoint> points_under(const CampaignEffect& truth, std::vector<double> kernel_seconds) {
  std::vector<CampaignPoint> points;
  for (const double seconds : kernel_seconds) points.push_back({seconds, campaign_seconds(truth, seconds)});
  return points;
}

TEST(Campaign, a_time_is_never_below_the_gaps_and_follows_long_kernels) {
  const CampaignEffect effect{.before = 10e-6, .after = 20e-6, .scale = 1.5};
  EXPECT_NEAR(campaign_seconds(effect, 1e-7), 30e-6, 1e-8);
  EXPECT_NEAR(campaign_seconds(effect, 1e-2), 15.01e-3, 1e-7);
  double last = 0;
  for (double seconds = 1e-6; seconds < 1; seconds *= 1.3) {
    EXPECT_GT(campaign_seconds(effect, seconds), last);
    last = campaign_seconds(effect, seconds);
  }
}

TEST(Campaign, four_exact_points_give_their_campaign_back_between_and_beyond) {
  const CampaignEffect truth{.before = 25e-6, .after = 12e-6, .scale = 1.2};
  const CampaignEffect fitted = fit_campaign_effect(points_under(truth, {1e-6, 20e-6, 200e-6, 5e-3}));
  EXPECT_EQ(fitted.points, 4u);
  for (const double seconds : {3e-6, 50e-6, 1e-3, 20e-3}) {
    EXPECT_NEAR(campaign_seconds(fitted, seconds) / campaign_seconds(truth, seconds), 1, 0.05) << seconds;
  }
}

TEST(Campaign, one_point_moves_the_scale_but_not_beyond_reason) {
  const std::vector<CampaignPoint> one = {{1e-3, 2e-3}};
  const CampaignEffect fitted = fit_campaign_effect(one);
  EXPECT_GT(fitted.scale, 1.5);
  EXPECT_LT(fitted.scale, 2.1);
}

TEST(Campaign, points_are_spread_and_none_is_taken_twice) {
  RandomStream random(1, "points");
  std::vector<CampaignPoint> points;
  for (int i = 0; i < 30; ++i) points.push_back({std::exp(random.uniform(-14, -4)), 1});
  for (const size_t count : {1u, 2u, 4u, 29u, 30u, 99u}) {
    const std::vector<size_t> chosen = spread_points(points, count);
    EXPECT_EQ(chosen.size(), std::min<size_t>(count, points.size()));
    EXPECT_EQ(std::set<size_t>(chosen.begin(), chosen.end()).size(), chosen.size());
    if (count < 2) continue;
    double least = 1, most = 0;
    for (const CampaignPoint& point : points) {
      least = std::min(least, point.kernel_seconds);
      most = std::max(most, point.kernel_seconds);
    }
    double chosen_least = 1, chosen_most = 0;
    for (const size_t index : chosen) {
      chosen_least = std::min(chosen_least, points[index].kernel_seconds);
      chosen_most = std::max(chosen_most, points[index].kernel_seconds);
    }
    EXPECT_EQ(least, chosen_least);
    EXPECT_EQ(most, chosen_most);
  }
}

TEST(Campaign, a_file_reads_back_as_it_was_and_strange_ones_are_refused) {
  Campaign campaign{.source = "a lab", .fitted_on = "2026-01-01", .effects = {}};
  campaign.effects[{"t4", "eager softmax"}] = {
      .before = 12e-6, .after = 3e-6, .scale = 1.25, .half_width = 0.2, .points = 4};
  const Campaign back = parse_campaign(campaign_json(campaign), "text");
  ASSERT_EQ(back.effects.size(), 1u);
  EXPECT_NEAR(back.effects.begin()->second.before, 12e-6, 1e-15);
  EXPECT_EQ(back.effects.begin()->second.scale, 1.25);
  EXPECT_EQ(back.source, "a lab");
  for (const char* text : {"{}", "[]", R"({"kind":"campaign","version":2,"source":"","fitted_on":"","effects":[]})",
                           R"({"kind":"form","version":1,"source":"","fitted_on":"","effects":[]})"}) {
    EXPECT_THROW(parse_campaign(text, "text"), InputError) << text;
  }
}

}  // namespace foretoken::campaign_test
