#include "plan/serving/serving_search.h"

#include <functional>
#include <map>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/serving/launch_command.h"
#include "plan/serving/layout_space.h"
#include "plan/serving/layout_trial.h"
#include "plan/serving/offers_test_support.h"

namespace foretoken::serving_search_test {

using testing::HasSubstr;

TEST(ServingSearch, finds_what_simulating_every_layout_finds) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, small_traffic());
  LayoutSimulator simulator(question, small_traffic(), shelf);
  double most = 0;
  const LayoutSpace space = layout_space(question);
  for (const ServingLayout& layout : space.layouts) {
    most = std::max(most, simulator.evaluate(layout, Effort::promised).capacity.value);
  }
  const ServingSearchResult result = search_with(question, {.quick = 1000, .full = 1000}, 1);
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->effort, Effort::promised);
  EXPECT_GE(result.winner()->capacity.value, most / 1.02);
  EXPECT_EQ(result.unexplored, 0);
}

TEST(ServingSearch, bounds_rule_out_nothing_that_a_simulation_finds_feasible) {
  const ServingQuestion question = small_question();
  int64_t kept = 0, ruled_out = 0;
  for (const char* slos : {"ttft<12ms@p95,tpot<1ms@p95", "ttft<25ms@p95,tpot<2ms@p95", "e2e<60ms@p90"}) {
    ServingQuestion tight = question;
    tight.slos = parse_slos(slos, "slo");
    const ServingFacts facts = roofline_facts();
    EngineShelf shelf(tight, facts, small_traffic());
    LayoutSimulator simulator(tight, small_traffic(), shelf);
    const LayoutSpace space = layout_space(tight);
    for (const ServingLayout& layout : space.layouts) {
      const LayoutEngines engines = shelf.engines(layout);
      if (!engines.start()) continue;
      const LayoutJudgement judgement = judge_layout(tight, small_traffic(), layout, engines);
      if (judgement.pruned) ++ruled_out;
      for (const double rate : {0.2, 2.0, 20.0, 100.0}) {
        const ServingRunRequest request = simulator.run_request(layout, engines, rate, 300);
        const ServingMetrics metrics = run_serving(request).metrics;
        bool attained = true;
        for (const LatencySlo& slo : tight.slos) {
          attained = attained && achieved_ms(slo, metrics, request.percentiles) <= slo.limit_ms;
        }
        if (!attained) continue;
        ++kept;
        EXPECT_FALSE(judgement.pruned) << layout.key() << " at " << rate << " within " << slos;
        EXPECT_GE(judgement.most_requests_per_s, rate) << layout.key() << " within " << slos;
      }
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(ruled_out, 0);
}

TEST(ServingSearch, the_number_of_threads_changes_nothing) {
  const ServingQuestion question = small_question();
  const SearchLimits limits{.quick = 6, .full = 2, .round = 2};
  const ServingSearchResult one = search_with(question, limits, 1), two = search_with(question, limits, 2);
  ASSERT_EQ(one.points.size(), two.points.size());
  EXPECT_EQ(one.ranking, two.ranking);
  EXPECT_EQ(one.unexplored, two.unexplored);
  for (size_t i = 0; i < one.points.size(); ++i) {
    EXPECT_EQ(one.points[i].layout, two.points[i].layout);
    EXPECT_EQ(one.points[i].capacity.value, two.points[i].capacity.value);
    EXPECT_EQ(one.points[i].capacity.low, two.points[i].capacity.low);
    EXPECT_EQ(one.points[i].capacity.high, two.points[i].capacity.high);
  }
}

// One of them is simulated for all; limits leave more or less memory for the cache, so it matters which one.
TEST(ServingSearch, which_of_several_limits_that_no_run_reaches_is_simulated_does_not_depend_on_their_order) {
  ServingQuestion question = small_question();
  question.hardware[0].most_devices = 1;
  question.choices.separate_pools = false;
  const auto simulated = [&](const std::vector<int64_t>& limits) {
    question.choices.max_num_seqs = limits;
    const ServingSearchResult result = search_with(question, {.quick = 1000, .full = 1}, 1);
    EXPECT_GT(result.merged, 0);
    std::map<std::string, double> capacities;
    for (const PlanPoint& point : result.points) capacities[point.layout.key()] = point.capacity.value;
    return capacities;
  };
  EXPECT_EQ(simulated({256, 512, 1024}), simulated({1024, 512, 256}));
}

TEST(ServingSearch, token_budgets_that_the_sequences_of_a_step_cannot_fill_are_one) {
  ServingQuestion question = small_question();
  question.hardware[0].most_devices = 1;
  question.choices.separate_pools = false;
  const auto merged = [&](int64_t seqs) {
    question.choices.max_num_seqs = {seqs};
    question.choices.max_num_batched_tokens = {4096, 8192, 16384};
    return search_with(question, {.quick = 1000, .full = 1}, 1).merged;
  };
  EXPECT_EQ(merged(4), 2);
  EXPECT_EQ(merged(64), 0);
}

TEST(ServingSearch, the_cheapest_layout_that_serves_the_rate_wins) {
  ServingQuestion question = small_question();
  question.objective = PlanObjective::cost;
  question.rate = 2;
  const ServingSearchResult slow = search_with(question, {}, 1);
  ASSERT_NE(slow.winner(), nullptr);
  EXPECT_EQ(slow.winner()->layout.devices(), 1);
  EXPECT_GE(slow.winner()->capacity.value, 2);
  ASSERT_NE(slow.winner()->at_rate(2), nullptr);
  EXPECT_TRUE(slow.winner()->at_rate(2)->attained);
  EXPECT_TRUE(std::any_of(slow.curve.begin(), slow.curve.end(), [](const PlanRun& run) { return run.rate == 2; }));

  question.rate = 1e6;
  const ServingSearchResult none = search_with(question, {}, 1);
  EXPECT_EQ(none.winner(), nullptr);
  EXPECT_EQ(none.pruned[static_cast<size_t>(PruneReason::too_few_requests)], none.layouts);
  question.rate.reset();
  question.objective = PlanObjective::capacity;
  ASSERT_NE(none.without_rate, nullptr);
  EXPECT_EQ(none.without_rate->winner()->capacity.value, search_with(question, {}, 1).winner()->capacity.value);
}

TEST(ServingSearch, a_server_that_runs_out_of_memory_while_it_starts_is_left_out_and_counted) {
  ServingQuestion question = small_question();
  question.memory_fraction = 0.999;  // nothing is left for the context
  for (const bool closed_form : {false, true}) {
    const ServingSearchResult found = search_with(question, {.closed_form = closed_form}, 1);
    EXPECT_EQ(found.winner(), nullptr);
    EXPECT_EQ(found.pruned[static_cast<size_t>(PruneReason::runs_out)], found.layouts);
  }
}

// Of many replicas, one less would not do: short runs of one replica tell the number only roughly.
TEST(ServingSearch, no_more_replicas_are_asked_for_than_serve_the_rate) {
  ServingQuestion question = small_question();
  question.objective = PlanObjective::cost;
  question.hardware.front().most_devices = 64;
  question.choices.separate_pools = false;
  question.choices.tensor = {1};
  question.choices.max_num_seqs = {0};
  question.rate = 20 * search_with(small_question(), {}, 1).winner()->capacity.value;
  const ServingSearchResult result = search_with(question, {}, 1);
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_GE(result.winner()->capacity.value, *question.rate);
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, small_traffic());
  LayoutSimulator simulator(question, small_traffic(), shelf);
  ServingLayout fewer = result.winner()->layout;
  ASSERT_GT(fewer.pool.replicas, 8);
  fewer.pool.replicas -= 1 + fewer.pool.replicas / 20;
  EXPECT_LT(simulator.evaluate(fewer, Effort::promised).capacity.value, *question.rate);
}

// Pools of two engines each are not two pools of one: their queues are shared.
TEST(ServingSearch, long_runs_of_two_pools_keep_several_engines_of_each) {
  const ServingLayout layout{.pool = {.replicas = 12}, .decode = EnginePool{.replicas = 4}};
  EXPECT_EQ(part_of(layout, 1).pool.replicas, 3);
  EXPECT_EQ(part_of(layout, 1).decode->replicas, 1);
  EXPECT_EQ(part_of(layout, 2).pool.replicas, 6);
  EXPECT_EQ(part_of(layout, 2).decode->replicas, 2);
  EXPECT_EQ(part_of(layout, 8).pool.replicas, 12);
}

// Nobody waits less than a request that has the engine for itself.
TEST(ServingSearch, says_how_fast_a_request_alone_would_be) {
  ServingQuestion question = small_question();
  question.slos = parse_slos("ttft<0.001ms@p95,tpot<4ms@p95", "slo");
  const ServingSearchResult none = search_with(question, {}, 1);
  EXPECT_EQ(none.winner(), nullptr);
  ASSERT_EQ(none.fastest_alone.size(), 2U);
  const ServingSearchResult some = search_with(small_question(), {}, 1);
  ASSERT_NE(some.winner(), nullptr);
  EXPECT_EQ(some.fastest_alone[0].ms, none.fastest_alone[0].ms);
  for (const PlanRun& run : some.winner()->runs) {
    EXPECT_GT(run.achieved_ms[0], none.fastest_alone[0].ms);
    EXPECT_GT(run.achieved_ms[1], none.fastest_alone[1].ms / 1.05);
  }
}

// Requests that meet both limits are no more than those that meet one.
TEST(ServingSearch, limits_together_are_harder_to_keep_than_each_alone) {
  ServingQuestion question = small_question();
  const double apart = search_with(question, {}, 1).winner()->capacity.value;
  question.joint_percent = 95;
  const ServingSearchResult together = search_with(question, {}, 1);
  ASSERT_NE(together.winner(), nullptr);
  EXPECT_LE(together.winner()->capacity.value, apart * 1.02);
  for (const PlanRun& run : together.winner()->runs) {
    for (size_t i = 0; run.attained && i < question.slos.size(); ++i) {
      EXPECT_LE(run.achieved_ms[i], question.slos[i].limit_ms * 1.001);
    }
  }
  question.joint_percent = 50;
  for (LatencySlo& slo : question.slos) slo.percentile = 50;
  EXPECT_GT(search_with(question, {}, 1).winner()->capacity.value, apart);
}

// Answers as it is told.
class FixedEvaluator : public PlanEvaluator {
 public:
  std::function<PlanPoint(const ServingLayout&)> point;
  std::function<PlanPoint(const ServingLayout&, Effort)> point_at = [this](const ServingLayout& layout, Effort) {
    return point(layout);
  };
  std::function<double(const ServingLayout&)> bound = [](const ServingLayout&) { return 1000; };
  std::vector<LayoutJudgement> judge(std::span<const ServingLayout> layouts) override {
    std::vector<LayoutJudgement> judgements;
    for (const ServingLayout& layout : layouts) {
      judgements.push_back({.pruned = {}, .most_requests_per_s = bound(layout), .alone_ms = {1}});
    }
    return judgements;
  }
  std::vector<PlanPoint> evaluate(std::span<const ServingLayout> layouts, Effort effort) override {
    std::vector<PlanPoint> points;
    for (const ServingLayout& layout : layouts) {
      points.push_back(point_at(layout, effort));
      points.back().layout = layout;
      points.back().effort = effort;
    }
    return points;
  }
};

TEST(ServingSearch, of_layouts_that_capacity_cannot_tell_apart_the_faster_one_wins) {
  FixedEvaluator evaluator;
  evaluator.point = [](const ServingLayout& layout) {
    const bool limited = layout.pool.max_num_seqs > 0;
    const double capacity = limited ? 10 : 10.1;
    return PlanPoint{.layout = {},
                     .capacity = {.value = capacity, .low = capacity, .high = capacity},
                     .runs = {{.rate = capacity,
                               .attained = true,
                               .achieved_ms = {1, 1},
                               .output_tokens_per_s = 100,
                               .tokens_per_s_of_user = limited ? 50.0 : 20.0}}};
  };
  ServingQuestion question = small_question();
  question.choices.separate_pools = false;
  const ServingSearchResult result = search_serving_layouts(question, evaluator);
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->layout.pool.max_num_seqs, 8);
}

PlanPoint point_with(double capacity, double low, double high) {
  return {.layout = {},
          .capacity = {.value = capacity, .low = low, .high = high},
          .runs = {{.rate = capacity,
                    .attained = true,
                    .achieved_ms = {1, 1},
                    .output_tokens_per_s = 100,
                    .tokens_per_s_of_user = 50}}};
}

TEST(ServingSearch, of_layouts_that_capacity_cannot_tell_apart_the_simplest_to_run_wins) {
  FixedEvaluator evaluator;
  evaluator.point = [](const ServingLayout& layout) {
    const bool is_plain = layout.pool.max_num_seqs == 0 && layout.pool.engine.tensor == 1;
    const double capacity = is_plain ? 10 : 10.1;
    return point_with(capacity, capacity, capacity);
  };
  ServingQuestion question = small_question();
  question.rate = 5;  // every layout has both devices or half of them
  question.objective = PlanObjective::capacity;
  question.choices.separate_pools = false;
  const ServingSearchResult result = search_serving_layouts(question, evaluator);
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->layout.pool.max_num_seqs, 0);
  EXPECT_EQ(result.winner()->layout.pool.engine.tensor, 1);
  EXPECT_EQ(result.winner()->layout.devices(), 1);
}

// Slower steps slow down both: intervals that overlap say nothing of which is better.
TEST(ServingSearch, layouts_of_a_device_are_tied_by_their_ratio_and_not_by_their_intervals) {
  const ServingQuestion question = small_question();
  ServingSearchResult result;
  for (const double capacity : {10.0, 9.5, 8.0}) {
    result.points.push_back(point_with(capacity, capacity / 2, capacity * 2));
    result.points.back().effort = Effort::full;
    result.points.back().layout.pool.engine.device = "l4";
    result.ranking.push_back(result.ranking.size());
  }
  EXPECT_EQ(indistinguishable(question, result), std::vector<size_t>{1}) << "within what a search may be off by";
  result.points[2].capacity.high = 21;
  EXPECT_EQ(indistinguishable(question, result), (std::vector<size_t>{1, 2})) << "better where steps are fast";
  ServingQuestion at_rate = question;
  at_rate.rate = 6;
  result.points[2].capacity = {.value = 8, .low = 4, .high = 16};
  EXPECT_EQ(indistinguishable(at_rate, result), std::vector<size_t>{1}) << "no slow end reaches the rate";
}

TEST(ServingSearch, engines_below_the_rate_have_an_interval) {
  FixedEvaluator evaluator;
  const auto with_interval = [](const ServingLayout& layout, Effort effort) {
    // The more seats, the more it serves, and never enough.
    const double capacity =
        layout.pool.engine.engine == "vllm" ? 10 : 1 + 0.001 * static_cast<double>(layout.pool.max_num_seqs);
    return effort == Effort::quick ? point_with(capacity, capacity, capacity)
                                   : point_with(capacity, capacity * 0.9, capacity * 1.1);
  };
  evaluator.point_at = with_interval;
  ServingQuestion question = small_question();
  question.choices.engines = {"vllm", "sglang"};
  question.choices.max_num_seqs.clear();
  for (int64_t seats = 1; seats <= 40; ++seats) question.choices.max_num_seqs.push_back(seats);
  question.choices.separate_pools = false;
  question.objective = PlanObjective::cost;
  question.rate = 5;
  const ServingSearchResult result = search_serving_layouts(question, evaluator, {.quick = 8});
  const PlanPoint* best = nullptr;
  for (const PlanPoint& point : result.points) {
    if (point.layout.pool.engine.engine != "sglang") continue;
    if (best == nullptr || point.capacity.value > best->capacity.value) best = &point;
  }
  ASSERT_NE(best, nullptr);
  EXPECT_LT(best->capacity.low, best->capacity.high);
}

TEST(ServingSearch, by_closed_form_an_engine_below_the_rate_is_shown_by_its_most_capable_layout) {
  FixedEvaluator evaluator;
  evaluator.bound = [](const ServingLayout& layout) {
    return layout.pool.engine.engine == "vllm" ? 1000 : 10 + static_cast<double>(layout.pool.engine.tensor) / 10;
  };
  evaluator.point = [](const ServingLayout& layout) {
    const double capacity = layout.pool.engine.engine == "vllm" ? 100 : 5;
    return point_with(capacity, capacity, capacity);
  };
  ServingQuestion question = small_question();
  question.choices.engines = {"vllm", "sglang"};
  question.choices.separate_pools = false;
  question.objective = PlanObjective::cost;
  question.rate = 10;
  const ServingSearchResult result = search_serving_layouts(question, evaluator, {.closed_form = true});
  const auto point = std::find_if(result.points.begin(), result.points.end(),
                                  [](const PlanPoint& one) { return one.layout.pool.engine.engine == "sglang"; });
  ASSERT_NE(point, result.points.end());
  EXPECT_EQ(point->layout.pool.engine.tensor, 2);
}

TEST(ServingSearch, layouts_that_keep_no_limit_do_not_hide_those_that_do) {
  FixedEvaluator evaluator;
  evaluator.point = [](const ServingLayout& layout) {
    const double capacity = layout.pool.engine.tensor < 8 ? 0 : 10;
    return PlanPoint{.layout = {}, .capacity = {.value = capacity, .low = capacity, .high = capacity}, .runs = {}};
  };
  ServingQuestion question = small_question();
  question.hardware[0].most_devices = question.hardware[0].node_devices = 8;
  question.choices.separate_pools = false;
  question.choices.engines = {"vllm"};
  const ServingSearchResult result = search_serving_layouts(question, evaluator, {.round = 3});
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->layout.pool.engine.tensor, 8);
}

TEST(ServingSearch, the_cheapest_layouts_that_are_all_too_slow_do_not_hide_one_that_serves_the_rate) {
  FixedEvaluator evaluator;
  evaluator.point = [](const ServingLayout& layout) {
    const double capacity = layout.pool.engine.tensor < 8 ? 1 : 10;
    return PlanPoint{.layout = {}, .capacity = {.value = capacity, .low = capacity, .high = capacity}, .runs = {}};
  };
  evaluator.bound = [](const ServingLayout& layout) { return 20.0 * static_cast<double>(layout.devices()); };
  ServingQuestion question = small_question();
  question.hardware[0].most_devices = question.hardware[0].node_devices = 8;
  question.choices.separate_pools = false;
  question.objective = PlanObjective::cost;
  question.rate = 5;
  const ServingSearchResult result = search_serving_layouts(question, evaluator, {.quick = 6, .round = 2});
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->layout.pool.engine.tensor, 8);
}

TEST(ServingSearch, another_device_on_offer_changes_no_row_and_makes_no_answer_worse) {
  expect_rows_apart(std::nullopt);
  expect_rows_apart(120);
}

TEST(ServingSearch, the_winners_latencies_rise_with_the_rate_to_beyond_the_limits) {
  const ServingSearchResult result = search_with(small_question(), {}, 1);
  ASSERT_GT(result.curve.size(), 4U);
  EXPECT_TRUE(result.curve.front().attained);
  EXPECT_FALSE(result.curve.back().attained);
  for (size_t i = 1; i < result.curve.size(); ++i) EXPECT_GT(result.curve[i].rate, result.curve[i - 1].rate);
  EXPECT_LT(2 * result.curve.front().achieved_ms[0], result.curve.back().achieved_ms[0]);
}

TEST(ServingSearch, the_knee_has_the_most_rate_times_speed_for_a_user) {
  const auto run = [](double rate, double speed, bool attained = true) {
    return PlanRun{.rate = rate, .attained = attained, .achieved_ms = {}, .tokens_per_s_of_user = speed};
  };
  const std::vector<PlanRun> curve = {run(1, 100), run(5, 90), run(9, 70), run(10, 40), run(11, 90, false)};
  EXPECT_EQ(knee_of(curve), &curve[2]);
  EXPECT_EQ(knee_of(std::span(curve).first(2)), nullptr);
  EXPECT_EQ(knee_of(std::span(curve).first(3)), nullptr) << "nothing is known of rates beyond it";
  const std::vector<PlanRun> rising = {run(1, 100), run(5, 90), run(9, 70), run(10, 69, false), run(11, 20, false)};
  EXPECT_EQ(knee_of(rising), nullptr) << "beyond the limits, power still rises";
}

TEST(ServingSearch, the_frontier_knows_energy) {
  FixedEvaluator evaluator;
  evaluator.point = [](const ServingLayout& layout) {
    const bool limited = layout.pool.max_num_seqs > 0;
    return PlanPoint{.layout = {},
                     .capacity = {.value = 10, .low = 10, .high = 10},
                     .runs = {{.rate = 10,
                               .attained = true,
                               .achieved_ms = {1, 1},
                               .output_tokens_per_s = limited ? 90.0 : 100.0,
                               .tokens_per_s_of_user = limited ? 20.0 : 30.0,
                               .joules_per_token = {.value = limited ? 1.0 : 2.0}}}};
  };
  ServingQuestion question = small_question();
  question.choices.separate_pools = false;
  question.choices.tensor = {1};
  const ServingSearchResult result = search_serving_layouts(question, evaluator);
  const auto by = [](FrontierMeasure measure) { return static_cast<size_t>(measure); };
  ASSERT_EQ(result.frontier.size(), 2U);
  EXPECT_TRUE(result.frontier[0].best_in[by(FrontierMeasure::work)]);
  EXPECT_TRUE(result.frontier[0].best_in[by(FrontierMeasure::cost)]);
  EXPECT_FALSE(result.frontier[1].best_in[by(FrontierMeasure::work)]);
  EXPECT_TRUE(result.frontier[1].best_in[by(FrontierMeasure::energy)]);
}

TEST(ServingSearch, the_frontier_trades_speed_for_work) {
  const ServingSearchResult result = search_with(small_question(), {.quick = 12, .full = 2}, 1);
  ASSERT_FALSE(result.frontier.empty());
  for (size_t i = 1; i < result.frontier.size(); ++i) {
    EXPECT_LT(result.frontier[i].tokens_per_s_of_user, result.frontier[i - 1].tokens_per_s_of_user);
    EXPECT_GT(result.frontier[i].tokens_per_s_of_device, result.frontier[i - 1].tokens_per_s_of_device);
  }
}

TEST(ServingSearch, the_curve_does_not_contradict_the_frontier) {
  const ServingSearchResult result = search_with(small_question(), {.quick = 12, .full = 2}, 1);
  ASSERT_FALSE(result.curve.empty());
  const auto devices = static_cast<double>(result.winner()->layout.devices());
  for (const PlanRun& run : result.curve) {
    if (!run.attained || run.rate > result.winner()->capacity.value) continue;
    const bool is_reached = std::any_of(result.frontier.begin(), result.frontier.end(), [&](const FrontierRun& one) {
      return one.tokens_per_s_of_user >= run.tokens_per_s_of_user &&
             one.tokens_per_s_of_device >= run.output_tokens_per_s / devices;
    });
    EXPECT_TRUE(is_reached) << run.rate;
  }
}

TEST(LayoutSpace, every_layout_has_a_key_of_its_own_and_fits_the_devices) {
  ServingQuestion question = small_question();
  question.model = step_test::mixtral_like();
  question.choices.engines = {"vllm", "sglang"};
  question.choices.schemes = {std::nullopt, Scheme::fp8};
  question.hardware[0].most_devices = 8;
  question.hardware[0].node_devices = 4;
  question.rate = 1;
  question.budget_usd_per_hour = 6;
  std::vector<std::string> keys;
  const LayoutSpace space = layout_space(question);
  for (const ServingLayout& layout : space.layouts) {
    EXPECT_LE(layout.devices(), 6) << layout.key();
    EXPECT_LE(layout.pool.engine.tensor * layout.pool.engine.attention_ranks, 4) << layout.key();
    keys.push_back(layout.key());
  }
  EXPECT_GT(keys.size(), 100U);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST(ServingQuestion, what_rests_on_a_sheet_for_more_than_a_third_is_judged_by_its_slow_end) {
  ServingQuestion question = small_question();
  const ServingLayout layout = layout_space(question).layouts.front();
  question.hardware[0].sheet_share = 0.4;
  EXPECT_TRUE(question.is_judged_by_slow_end(layout)) << "whatever else is on offer";
  question.hardware[0].sheet_share = 0.3;
  EXPECT_FALSE(question.is_judged_by_slow_end(layout));
}

TEST(LayoutSpace, prompts_may_be_computed_on_other_devices) {
  ServingQuestion question = small_question();
  HardwareChoice other = question.hardware[0];
  other.device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("l40s");
  other.usd_per_hour = 2;
  question.hardware.push_back(other);
  question.budget_usd_per_hour = 5;
  const auto mixed = [&] {
    std::vector<ServingLayout> layouts = layout_space(question).layouts;
    std::erase_if(layouts, [](const ServingLayout& layout) { return !layout.is_mixed(); });
    return layouts;
  };
  EXPECT_TRUE(mixed().empty());
  question.choices.mixed_pools = true;
  const std::vector<ServingLayout> layouts = mixed();
  EXPECT_FALSE(layouts.empty());
  for (const ServingLayout& layout : layouts) {
    EXPECT_LE(*question.usd_per_hour(layout), 5) << layout.key();
    EXPECT_EQ(question.hardware_of(layout).size(), 2U);
  }
}

TEST(ServingLayout, its_key_stays_what_it_is) {
  const ServingLayout layout{
      .pool = {.engine = {.device = "h100_sxm", .scheme = Scheme::fp8, .tensor = 4}, .replicas = 2, .max_num_seqs = 64},
      .decode = {}};
  EXPECT_EQ(layout.key(), "h100_sxm/vllm/fp8/kv-bf16/tp4/pp1/dp1/x2/seqs64/tokens0");
}

TEST(LaunchCommand, says_what_the_layout_says) {
  ServingQuestion question = small_question();
  question.model.name = "org/model";
  EngineChoice engine{.device = "l4", .scheme = Scheme::fp8, .kv_dtype = DType::fp8, .tensor = 2};
  ServingLayout layout{.pool = {.engine = engine, .replicas = 3, .max_num_seqs = 64}, .decode = {}};
  const std::vector<LaunchCommand> vllm = launch_commands(question, layout, 4096);
  ASSERT_EQ(vllm.size(), 2U);
  EXPECT_EQ(vllm[0].count, 3);
  EXPECT_EQ(vllm[1].role, "router");
  EXPECT_EQ(
      vllm[0].line,
      "vllm serve org/model --tensor-parallel-size 2 --quantization fp8 --kv-cache-dtype fp8 --max-model-len 4096 "
      "--max-num-seqs 64");
  layout.pool.engine.engine = "sglang";
  layout.decode = layout.pool;
  const std::vector<LaunchCommand> sglang = launch_commands(question, layout, 4096);
  ASSERT_EQ(sglang.size(), 3U);
  EXPECT_THAT(sglang[0].line, HasSubstr("--disaggregation-mode prefill"));
  EXPECT_THAT(sglang[1].line, HasSubstr("--disaggregation-mode decode"));
  layout.decode.reset();
  layout.pool.engine.engine = "trtllm";
  EXPECT_THAT(launch_commands(question, layout, 4096)[0].note, HasSubstr("fp8"));
}

// Every server has devices and ports that no other has, and the router knows them all.
TEST(LaunchCommand, servers_of_one_host_are_apart) {
  ServingQuestion question = small_question();
  question.hardware[0].node_devices = 8;
  const EngineChoice engine{.device = "l4", .engine = "sglang", .tensor = 2};
  ServingLayout layout{.pool = {.engine = engine, .replicas = 2}, .decode = EnginePool{.engine = engine}};
  const std::vector<LaunchCommand> sglang = launch_commands(question, layout, 4096);
  ASSERT_EQ(sglang.size(), 4U);
  EXPECT_THAT(sglang[0].line, HasSubstr("CUDA_VISIBLE_DEVICES=0,1 "));
  EXPECT_THAT(sglang[1].line, HasSubstr("CUDA_VISIBLE_DEVICES=2,3 "));
  EXPECT_THAT(sglang[2].line, HasSubstr("CUDA_VISIBLE_DEVICES=4,5 "));
  EXPECT_THAT(sglang[2].line, HasSubstr("--disaggregation-mode decode"));
  EXPECT_EQ(sglang[3].line,
            "python -m sglang_router.launch_router --pd-disaggregation --prefill http://localhost:8001 8998 --prefill "
            "http://localhost:8002 8999 --decode http://localhost:8003 --port 8000");
  layout.pool.engine.engine = layout.decode->engine.engine = "vllm";
  const std::vector<LaunchCommand> vllm = launch_commands(question, layout, 4096);
  EXPECT_THAT(vllm[1].line, HasSubstr("VLLM_NIXL_SIDE_CHANNEL_PORT=5602 "));
  EXPECT_THAT(vllm[1].line, HasSubstr("--port 8002"));
  layout.pool.engine.engine = layout.decode->engine.engine = "trtllm";
  EXPECT_THAT(launch_commands(question, layout, 4096).back().note, HasSubstr("localhost:8003"));
}

// Prompts that begin with one of many long texts: more than the KV cache holds.
Traffic documents(int64_t texts, int64_t tokens_each) {
  constexpr int64_t block = 64;
  std::vector<Request> requests = random_requests(5, 400, 10, 60, 20);
  RandomStream random(7, "documents");
  for (Request& request : requests) {
    const auto text = static_cast<int64_t>(random.below(static_cast<uint64_t>(texts)));
    request.prefix_block_tokens = block;
    for (int64_t i = 0; i < tokens_each / block; ++i) request.prefix_blocks.push_back(text * 100'000 + i);
    request.input_tokens += tokens_each;
  }
  return Traffic(std::move(requests));
}

// An engine with as small a cache as it starts with.
ServingQuestion question_with_host_memory(const Traffic& traffic) {
  ServingQuestion question = small_question();
  question.slos = parse_slos("ttft<4s@p95,tpot<40ms@p95", "slo");
  question.hardware[0].most_devices = 1;
  // Room for prefixes but not for all of them, whatever is known of an L4's memory.
  question.hardware[0].device.allocatable_memory = Fact<Bytes>{.value = Bytes(25.25e9)};
  question.choices.max_num_seqs = {0};
  question.choices.separate_pools = false;
  question.choices.host_gib = {0, 64};
  const ServingFacts facts = roofline_facts();
  for (question.memory_fraction = 0.02; question.memory_fraction < 1; question.memory_fraction += 0.01) {
    EngineShelf shelf(question, facts, traffic);
    if (shelf.engines(layout_space(question).layouts.front()).start()) break;
  }
  return question;
}

TEST(ServingSearch, host_memory_wins_where_shared_prefixes_do_not_fit_in_the_cache) {
  const Traffic many = documents(50, 1024), few = documents(2, 640);
  const ServingQuestion question = question_with_host_memory(many);
  const ServingFacts facts = roofline_facts();
  const auto found_for = [&](const Traffic& traffic) {
    return search_serving_layouts(question, *threaded_evaluator(question, facts, traffic, 1));
  };
  const ServingSearchResult found = found_for(many);
  ASSERT_NE(found.winner(), nullptr);
  EXPECT_LT(found.winner()->kv_tokens, many.lengths().shared_tokens);
  EXPECT_EQ(found.winner()->layout.pool.host_gib, 64);
  EXPECT_THAT(layout_text(found.winner()->layout), HasSubstr("KV offload 64 GiB/GPU"));
  EngineShelf shelf(question, facts, many);
  LayoutSimulator simulator(question, many, shelf);
  const auto capacity = [&](int64_t host) {
    for (const PlanPoint& point : found.points) {
      if (point.layout.pool.host_gib == host) return simulator.evaluate(point.layout, Effort::full).capacity.value;
    }
    return 0.0;
  };
  EXPECT_GT(capacity(64), 1.2 * capacity(0));
  // What fits in the cache needs no memory below it.
  const ServingSearchResult without = found_for(few);
  ASSERT_NE(without.winner(), nullptr);
  EXPECT_EQ(without.winner()->layout.pool.host_gib, 0);
}

TEST(ServingSearch, each_size_of_host_memory_that_was_asked_for_is_simulated_before_others) {
  const Traffic many = documents(40, 1024);
  ServingQuestion question = question_with_host_memory(many);
  question.choices.host_gib = {0, 32, 64};
  question.choices.max_num_seqs = {0, 4, 8, 16};
  const ServingFacts facts = roofline_facts();
  const ServingSearchResult found =
      search_serving_layouts(question, *threaded_evaluator(question, facts, many, 1), {.quick = 3, .full = 1});
  for (const int64_t host : question.choices.host_gib) {
    EXPECT_TRUE(std::any_of(found.points.begin(), found.points.end(), [&](const PlanPoint& point) {
      return point.layout.pool.host_gib == host;
    })) << host;
  }
}

TEST(ClosedForm, prompts_tight_limits_and_prefixes_lower_what_is_reached_of_a_bound) {
  const ServingLayout layout{.pool = {.engine = {.device = "l4"}}, .decode = {}};
  const ReachedShare plain = usually_reached(layout, {});
  const ReachedShare prompts = usually_reached(layout, {.prompt_share = 1});
  const ReachedShare tight = usually_reached(layout, {.ttft_slack = 0.5});
  const ReachedShare prefixes = usually_reached(layout, {.fresh_share = 0.25});
  EXPECT_LT(prompts.usual, plain.usual);
  EXPECT_LT(prompts.low, plain.low);
  EXPECT_DOUBLE_EQ(tight.usual, plain.usual / 2);
  EXPECT_LT(tight.low, plain.low / 2);
  EXPECT_LT(tight.high, plain.high);
  EXPECT_GT(tight.high, plain.high / 2);
  // Prompts of ranks in lock step may still come together.
  const ReachedShare ranks = usually_reached(layout, {.alone_share = 0.25});
  EXPECT_DOUBLE_EQ(ranks.usual, plain.usual / 4);
  EXPECT_DOUBLE_EQ(ranks.low, plain.low / 4);
  EXPECT_DOUBLE_EQ(ranks.high, plain.high);
  // All that prompts share may have to be computed again, or nothing of it.
  EXPECT_DOUBLE_EQ(prefixes.low, plain.low / 4);
  EXPECT_DOUBLE_EQ(prefixes.high, plain.high);
}

TEST(ServingSearch, adapters_are_served_by_engines_that_can_with_slots_for_them) {
  ServingQuestion question = small_question();
  question.choices.engines = {"vllm", "sglang"};
  question.choices.max_loras = {1, 8};
  question.lora = LoraSettings{.max_cpu_loras = 8, .max_lora_rank = 64};
  question.slos = parse_slos("ttft<500ms@p95,tpot<40ms@p95", "slo");
  std::vector<Request> requests = random_requests(3, 400, 10, 600, 60);
  for (size_t i = 0; i < requests.size(); ++i) requests[i].adapter = static_cast<int32_t>(i % 8);
  const Traffic traffic(std::move(requests));
  const ServingFacts facts = roofline_facts();
  for (const ServingLayout& layout : layout_space(question).layouts) {
    EXPECT_EQ(layout.pool.engine.engine, "vllm") << layout.key();
    EXPECT_FALSE(layout.decode) << layout.key();
    EXPECT_GT(layout.pool.max_loras, 0) << layout.key();
  }
  EXPECT_THAT(left_out(question).front(), HasSubstr("LoRA adapters are simulated with vllm only"));
  // Slots take memory from the cache, and steps with adapters take longer.
  EngineShelf shelf(question, facts, traffic);
  const auto cache_with = [&](int64_t slots) {
    const EnginePool pool{.engine = {.device = "l4"}, .max_loras = slots};
    return shelf.engines({.pool = pool, .decode = {}}).pool->group.config.options.num_gpu_blocks;
  };
  EXPECT_LT(cache_with(8), cache_with(1));
  const ServingSearchResult result = search_serving_layouts(question, *threaded_evaluator(question, facts, traffic, 1));
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->layout.pool.max_loras, 8) << "one slot for eight adapters makes requests wait";
  const ServingSearchResult quick =
      search_serving_layouts(question, *threaded_evaluator(question, facts, traffic, 1), {.closed_form = true});
  ASSERT_NE(quick.winner(), nullptr);
  EXPECT_EQ(quick.winner()->layout.pool.max_loras, 8) << "closed forms take as many slots as fit";
  EXPECT_EQ(quick.tried.front().simulated, 0);
  ServingQuestion plain = question;
  plain.lora.reset();
  plain.choices.max_loras = {0};
  plain.choices.engines = {"vllm"};
  const ServingSearchResult base = search_serving_layouts(plain, *threaded_evaluator(plain, facts, traffic, 1));
  EXPECT_GT(base.winner()->capacity.value, result.winner()->capacity.value);
}

}  // namespace foretoken::serving_search_test
