#include "plan/serving/search_result.h"

#include <algorithm>
#include <cmath>

namespace foretoken {

std::optional<LayoutScore> layout_score(const ServingQuestion& question, const ServingLayout& layout,
                                        double requests_per_s) {
  if (requests_per_s <= 0 || (question.rate && requests_per_s < *question.rate)) return std::nullopt;
  // Where nobody knows a price, devices are what a layout costs.
  const double cost = question.usd_per_hour(layout).value_or(static_cast<double>(layout.devices()));
  switch (question.objective) {
    case PlanObjective::capacity:
      return LayoutScore{.first = requests_per_s, .second = -cost};
    case PlanObjective::cost:
      return LayoutScore{.first = -cost, .second = requests_per_s};
    case PlanObjective::cost_per_request:
      return LayoutScore{.first = requests_per_s / cost, .second = requests_per_s};
  }
  return std::nullopt;
}

double ranked_capacity(const ServingQuestion& question, const ServingSearchResult& result, const PlanPoint& point) {
  const bool by_slow_end = result.ranked_by_slow_end && question.is_judged_by_slow_end(point.layout) &&
                           !result.ranked_by_middle.contains(devices_text(point.layout));
  return by_slow_end ? point.capacity.low : point.capacity.value;
}

std::optional<Headline> usd_per_million_interval(const ServingQuestion& question, const PlanPoint& point) {
  const PlanRun* run = shown_run(question, point);
  if (run == nullptr || point.capacity.low <= 0 || point.capacity.low == point.capacity.high) return std::nullopt;
  const std::optional<double> usd = usd_per_million_tokens(question, point.layout, *run);
  if (!usd) return std::nullopt;
  const bool at_rate = question.rate && point.capacity.value >= *question.rate;
  if (!at_rate) {
    return Headline{.value = *usd,
                    .low = *usd * point.capacity.value / point.capacity.high,
                    .high = *usd * point.capacity.value / point.capacity.low};
  }
  // Whole engines; of two pools, whole layouts.
  const auto parts = static_cast<double>(point.layout.decode ? 1 : point.layout.pool.replicas);
  const auto needed = [&](double capacity) { return std::ceil(*question.rate / (capacity / parts) - 1e-9) / parts; };
  return Headline{.value = *usd,
                  .low = *usd * std::min(1.0, needed(point.capacity.high)),
                  .high = *usd * std::max(1.0, needed(point.capacity.low))};
}

const PlanRun* shown_run(const ServingQuestion& question, const PlanPoint& point) {
  const bool serves_rate = question.rate && point.capacity.value >= *question.rate;
  return serves_rate ? point.at_rate(*question.rate) : point.at_capacity();
}

const PlanRun* knee_of(std::span<const PlanRun> curve) {
  constexpr int64_t least_runs = 3;
  const PlanRun* knee = nullptr;
  int64_t kept = 0;
  for (const PlanRun& run : curve) {
    if (!run.attained || run.tokens_per_s_of_user <= 0) continue;
    ++kept;
    if (knee == nullptr || run.rate * run.tokens_per_s_of_user > knee->rate * knee->tokens_per_s_of_user) knee = &run;
  }
  return kept >= least_runs ? knee : nullptr;
}

std::vector<size_t> indistinguishable(const ServingQuestion& question, const ServingSearchResult& result) {
  std::vector<size_t> alike_points;
  if (result.ranking.empty()) return alike_points;
  const PlanPoint& winner = *result.winner();
  const auto least = layout_score(question, winner.layout, winner.capacity.low);
  for (size_t i = 1; i < result.ranking.size(); ++i) {
    const PlanPoint& other = result.points[result.ranking[i]];
    if (layout_score(question, other.layout, other.capacity.high) >= least) alike_points.push_back(result.ranking[i]);
  }
  return alike_points;
}

}  // namespace foretoken
