#include "plan/serving/search_result.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace foretoken {
namespace {

// Capacities of finalists are as near as that: layout_simulation.cpp.
constexpr double tie_tolerance = 0.02;

// Fewer kinds of parallelism, fewer changed defaults and narrower groups are easier to run.
std::tuple<int, int, int64_t> complexity(const ServingLayout& layout) {
  int kinds = layout.decode ? 1 : 0, changed = 0;
  int64_t width = 0;
  const auto add = [&](const EnginePool& pool) {
    const EngineChoice& engine = pool.engine;
    kinds += (engine.tensor > 1 ? 1 : 0) + (engine.pipeline > 1 ? 1 : 0) + (engine.attention_ranks > 1 ? 1 : 0) +
             (engine.expert_parallel ? 1 : 0) + (engine.speculates ? 1 : 0);
    changed += (engine.deepep ? 1 : 0) + (pool.max_num_seqs > 0 ? 1 : 0) + (pool.max_num_batched_tokens > 0 ? 1 : 0) +
               (pool.host_gib > 0 ? 1 : 0);
    width = std::max(width, engine.devices());
  };
  add(layout.pool);
  if (layout.decode) add(*layout.decode);
  return {kinds, changed, width};
}

// By so much, a capacity may be off that was not promised.
double search_error(const PlanPoint& point) {
  return is_at_length(point.effort) ? 2 * tie_tolerance : short_run_error;
}

bool is_tied(const ServingQuestion& question, const PlanPoint& winner, const PlanPoint& other) {
  if (devices_text(winner.layout) != devices_text(other.layout)) {
    // A slow end below the rate asked for makes nothing else cheaper.
    const bool has_no_slow_end = question.in_flight && winner.capacity.low <= 0;  // limits are missed there
    const double least =
        has_no_slow_end ? winner.capacity.value : std::max(winner.capacity.low, question.rate.value_or(0));
    return layout_score(question, other.layout, other.capacity.high) >= layout_score(question, winner.layout, least);
  }
  const double error = 1 + search_error(winner) + search_error(other);
  const auto reaches = [&](double own, double winners) {
    const double least = std::max(winners, question.rate.value_or(0));
    return winners > 0 &&
           layout_score(question, other.layout, own * error) >= layout_score(question, winner.layout, least);
  };
  return reaches(other.capacity.value, winner.capacity.value) || reaches(other.capacity.low, winner.capacity.low) ||
         reaches(other.capacity.high, winner.capacity.high);
}

}  // namespace

bool serves_by_middle_alone(const ServingQuestion& question, const ServingSearchResult& result,
                            const ServingLayout& layout) {
  return question.is_judged_by_slow_end(layout) && result.ranked_by_middle.contains(devices_text(layout));
}

bool is_of(const ServingLayout& layout, const TriedEngine& tried) {
  const EngineChoice& engine = layout.pool.engine;
  return engine.device == tried.device && engine.engine == tried.engine && !layout.is_mixed();
}

std::optional<LayoutScore> layout_score(const ServingQuestion& question, const ServingLayout& layout,
                                        double requests_per_s) {
  if (requests_per_s <= 0 || (question.rate && requests_per_s < *question.rate)) return std::nullopt;
  const bool is_priced = !question.money_decides() || question.usd_per_hour(layout).has_value();
  const double cost = question.compared_cost(layout);
  switch (question.objective) {
    case PlanObjective::capacity:
      return LayoutScore{.is_priced = is_priced, .first = requests_per_s, .second = -cost};
    case PlanObjective::cost:
      return LayoutScore{.is_priced = is_priced, .first = -cost, .second = requests_per_s};
    case PlanObjective::cost_per_request:
      return LayoutScore{.is_priced = is_priced, .first = requests_per_s / cost, .second = requests_per_s};
  }
  return std::nullopt;
}

std::optional<LayoutScore> tie_score(const ServingQuestion& question, const ServingLayout& winner,
                                     double requests_per_s) {
  return layout_score(question, winner, std::max(requests_per_s / (1 + tie_tolerance), question.rate.value_or(0)));
}

std::vector<size_t> preferred_of_ties(const ServingQuestion& question, std::span<const PlanPoint* const> tied) {
  constexpr double as_fast = 0.95;
  const auto speed = [&](size_t i) {
    const PlanRun* run = shown_run(question, *tied[i]);
    return run != nullptr ? run->tokens_per_s_of_user : 0;
  };
  double fastest = 0;
  for (size_t i = 0; i < tied.size(); ++i) fastest = std::max(fastest, speed(i));
  const auto burden = [&](size_t i) {
    const ServingLayout& layout = tied[i]->layout;
    return std::tuple(question.compared_cost(layout), layout.devices(), layout.pool.host_gib > 0,
                      speed(i) < as_fast * fastest, complexity(layout), -speed(i));
  };
  std::vector<size_t> places(tied.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return burden(a) < burden(b); });
  return places;
}

double ranked_capacity(const ServingQuestion& question, const ServingSearchResult& result, const PlanPoint& point) {
  const bool by_slow_end = result.ranked_by_slow_end && question.is_judged_by_slow_end(point.layout) &&
                           !result.ranked_by_middle.contains(devices_text(point.layout));
  return by_slow_end ? point.capacity.low : point.capacity.value;
}

std::optional<Headline> usd_per_million_interval(const ServingQuestion& question, const PlanPoint& point) {
  const PlanRun* run = shown_run(question, point);
  if (run == nullptr || point.capacity.low == point.capacity.high) return std::nullopt;
  const std::optional<double> usd = usd_per_million_tokens(question, point.layout, *run);
  if (!usd) return std::nullopt;
  const bool at_rate = question.rate && point.capacity.value >= *question.rate;
  if (!at_rate) {
    return Headline{.value = *usd,
                    .low = *usd * point.capacity.value / point.capacity.high,
                    .high = point.capacity.low > 0 ? *usd * point.capacity.value / point.capacity.low
                                                   : std::numeric_limits<double>::infinity()};
  }
  // Whole engines; of two pools, whole layouts.
  const auto parts = static_cast<double>(point.layout.decode ? 1 : point.layout.pool.replicas);
  const auto needed = [&](double capacity) {
    if (capacity <= 0) return std::numeric_limits<double>::infinity();
    return std::ceil(*question.rate / (capacity / parts) - 1e-9) / parts;
  };
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
  const auto power = [](const PlanRun& run) { return run.rate * run.tokens_per_s_of_user; };
  const PlanRun* knee = nullptr;
  int64_t kept = 0;
  for (const PlanRun& run : curve) {
    if (!run.attained || run.tokens_per_s_of_user <= 0) continue;
    ++kept;
    if (knee == nullptr || power(run) > power(*knee)) knee = &run;
  }
  if (kept < least_runs) return nullptr;
  // At an end of the curve, or where the next rate gains as much as this one: no run shows what comes beyond it.
  const bool is_inside = knee != &curve.front() && knee != &curve.back();
  return is_inside && power(*(knee + 1)) < power(*knee) ? knee : nullptr;
}

const PlanPoint* most_capable(const ServingSearchResult& result) {
  const PlanPoint* best = nullptr;
  const auto look = [&](const std::vector<PlanPoint>& points) {
    for (const PlanPoint& point : points) {
      if (point.capacity.value > 0 && (best == nullptr || point.capacity.value > best->capacity.value)) best = &point;
    }
  };
  if (result.without_rate) {
    if (const PlanPoint* winner = result.without_rate->winner()) return winner;
    look(result.without_rate->points);
  }
  if (best == nullptr) look(result.points);
  return best;
}

std::vector<size_t> indistinguishable(const ServingQuestion& question, const ServingSearchResult& result) {
  std::vector<size_t> alike_points;
  if (result.ranking.empty()) return alike_points;
  const PlanPoint& winner = *result.winner();
  for (size_t i = 1; i < result.ranking.size(); ++i) {
    if (is_tied(question, winner, result.points[result.ranking[i]])) alike_points.push_back(result.ranking[i]);
  }
  return alike_points;
}

}  // namespace foretoken
