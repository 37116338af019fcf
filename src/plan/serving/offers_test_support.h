// Tests of what a search finds for devices alone and together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"
#include "plan/serving/serving_search.h"

namespace foretoken {

inline ServingSearchResult search_with(const ServingQuestion& question, const SearchLimits& limits, unsigned threads) {
  const ServingFacts facts = roofline_facts();
  return search_serving_layouts(question, *threaded_evaluator(question, facts, small_traffic(), threads), limits);
}

// Capacity of the best layout of each device and engine, at the rate asked for or, below it, at all.
inline std::map<std::string, std::pair<std::string, double>> best_of_each(const ServingQuestion& question,
                                                                          const ServingSearchResult& result) {
  std::map<std::string, std::pair<std::string, double>> rows;
  const auto look = [&](const ServingSearchResult& from, bool at_rate) {
    for (const PlanPoint& point : from.points) {
      const EngineChoice& engine = point.layout.pool.engine;
      const double capacity = ranked_capacity(question, from, point);
      if (point.layout.is_mixed() || (at_rate && !layout_score(question, point.layout, capacity))) continue;
      auto& row = rows[fmt::format("{} {} {}", engine.device, engine.engine, at_rate)];
      if (point.capacity.value > row.second) row = {point.layout.key(), point.capacity.value};
    }
  };
  look(result, true);
  if (result.without_rate) look(*result.without_rate, false);
  return rows;
}

// Of three devices, each alone and all together. `rate`: to serve at the lowest cost; nothing: the lowest cost of a
// request.
inline void expect_rows_apart(std::optional<double> rate) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const auto choice = [&](const char* name, double usd, double sheet_share) {
    HardwareChoice one = small_question().hardware[0];
    one.device = hardware.device(name);
    one.usd_per_hour = usd;
    one.sheet_share = sheet_share;
    return one;
  };
  const std::vector<HardwareChoice> devices = {choice("l4", 1, 0), choice("l40s", 2, 0.5), choice("h100_sxm", 6, 0)};
  ServingQuestion question = small_question();
  question.choices.engines = {"vllm", "sglang"};
  question.choices.separate_pools = false;
  question.rate = rate;
  question.objective = rate ? PlanObjective::cost : PlanObjective::cost_per_request;
  std::map<std::string, std::pair<std::string, double>> alone;
  std::optional<LayoutScore> best;
  for (const HardwareChoice& one : devices) {
    question.hardware = {one};
    const ServingSearchResult result = search_with(question, {}, 1);
    alone.merge(best_of_each(question, result));
    if (result.winner() != nullptr && !result.ranked_by_middle.contains("l40s")) {
      const double capacity = ranked_capacity(question, result, *result.winner());
      best = std::max(best, layout_score(question, result.winner()->layout, capacity));
    }
  }
  question.hardware = devices;
  const ServingSearchResult together = search_with(question, {}, 1);
  EXPECT_EQ(best_of_each(question, together), alone) << "at " << rate.value_or(0);
  ASSERT_NE(together.winner(), nullptr);
  const double capacity = ranked_capacity(question, together, *together.winner());
  EXPECT_GE(layout_score(question, together.winner()->layout, capacity * 1.02), best);
}

}  // namespace foretoken
