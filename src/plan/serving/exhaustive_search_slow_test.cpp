// Bounds, merged limits, short runs, runs that end early: none of them may cost the winner. Twenty small questions are
// searched as users search them, and again by simulating every layout that starts, to the end and at length.
#include <algorithm>

#include <gtest/gtest.h>

#include "plan/serving/layout_space.h"
#include "plan/serving/search_test_support.h"
#include "plan/serving/serving_search.h"

namespace foretoken::exhaustive_search_slow_test {

// Capacities by long runs are found within 2%: of layouts that are as near, the search takes the cheaper one, then the
// one that is faster for a user (docs/planning.md).
constexpr double tolerance = 0.02;

const Traffic& short_answers() {
  static const Traffic traffic(random_requests(5, 400, 50, 300, 20));
  return traffic;
}

// Every layout that starts, by the same runs that finalists have, and the best of them by those of a promise, each to
// its end.
std::vector<PlanPoint> every_layout(const ServingQuestion& question, const Traffic& traffic,
                                    const ServingFacts& facts) {
  constexpr double may_still_win = 1.15;
  EngineShelf shelf(question, facts, traffic);
  LayoutSimulator simulator(question, traffic, shelf, {}, Shortcuts::none);
  std::vector<PlanPoint> all;
  std::optional<LayoutScore> best;
  const LayoutSpace space = layout_space(question);
  for (const ServingLayout& layout : space.layouts) {
    all.push_back(simulator.evaluate(layout, Effort::full));
    best = std::max(best, layout_score(question, layout, all.back().capacity.value));
  }
  std::vector<PlanPoint> promised;
  for (const PlanPoint& one : all) {
    if (!best || layout_score(question, one.layout, one.capacity.value * may_still_win) < best) continue;
    promised.push_back(simulator.evaluate(one.layout, Effort::promised));
  }
  return promised;
}

// The winner is the best of all, or tied with it within what capacities tell.
void expect_same_winner(const ServingQuestion& question, const Traffic& traffic) {
  const ServingFacts facts = roofline_facts();
  const ServingSearchResult result = search_serving_layouts(question, *threaded_evaluator(question, facts, traffic, 1));
  std::optional<LayoutScore> best;
  const ServingLayout* best_layout = nullptr;
  const std::vector<PlanPoint> all = every_layout(question, traffic, facts);
  const PlanPoint* own = nullptr;
  for (const PlanPoint& one : all) {
    const auto score = layout_score(question, one.layout, one.capacity.value);
    if (score > best) {
      best = score;
      best_layout = &one.layout;
    }
    if (result.winner() != nullptr && one.layout == result.winner()->layout) own = &one;
  }
  ASSERT_EQ(result.winner() != nullptr, best.has_value()) << "one finds a layout, the other none";
  if (!best) return;
  ASSERT_NE(own, nullptr);
  EXPECT_GE(layout_score(question, own->layout, own->capacity.value * (1 + tolerance)), best)
      << "found " << own->layout.key() << ", best is " << best_layout->key();
}

class TwentyQuestions : public testing::TestWithParam<int> {};

TEST_P(TwentyQuestions, have_the_same_winner_as_simulating_everything) {
  constexpr const char* limits[] = {"ttft<60ms@p95,tpot<4ms@p95", "ttft<150ms@p99,tpot<3ms@p99",
                                    "ttft<40ms@p90,tpot<6ms@p90", "e2e<300ms@p95,tpot<5ms@p95",
                                    "ttft<25ms@p50,e2e<250ms@p90,tpot<4ms@p99"};
  const int number = GetParam();
  ServingQuestion question = small_question();
  question.slos = parse_slos(limits[number % 5], "slo");
  const Traffic& traffic = number % 2 == 0 ? small_traffic() : short_answers();
  switch (number / 5) {
    case 0:  // most requests
      break;
    case 1:  // the cheapest layout for a rate, which may take one device or two
      question.objective = PlanObjective::cost;
      question.rate = 20;
      break;
    case 2:  // the cheapest requests, with small batches too
      question.objective = PlanObjective::cost_per_request;
      question.choices.max_num_seqs = {0, 2};
      question.choices.separate_pools = false;
      break;
    default:  // two kinds of devices
      HardwareChoice other = question.hardware.front();
      other.device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("l40s");
      other.usd_per_hour = 2;
      question.hardware.push_back(other);
      question.objective = PlanObjective::cost_per_request;
      question.choices.max_num_seqs = {0};
      question.choices.separate_pools = false;
  }
  expect_same_winner(question, traffic);
}

INSTANTIATE_TEST_SUITE_P(Small, TwentyQuestions, testing::Range(0, 20));

}  // namespace foretoken::exhaustive_search_slow_test
