#include "plan/serving/goal_seek.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"

namespace foretoken::goal_seek_test {

using testing::HasSubstr;

// Without the server in front of the engine, which tokenizes no faster on another GPU and bounds so small a model.
ServingFacts engines_alone() {
  ServingFacts facts = roofline_facts();
  facts.stack = [](std::string_view name) {
    Stack stack = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack(std::string(name));
    stack.costs.front = {};
    return stack;
  };
  return facts;
}

std::vector<SoughtChange> sought(const ServingQuestion& question, const std::vector<HardwareChoice>& others = {}) {
  const ServingFacts facts = engines_alone();
  const ServingSearchResult result =
      search_serving_layouts(question, *threaded_evaluator(question, facts, small_traffic(), 1));
  return seek_goals(question, small_traffic(), facts, *result.winner(), others).changes;
}

const SoughtChange* named(const std::vector<SoughtChange>& changes, const std::string& part) {
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const SoughtChange& one) { return one.change.find(part) != std::string::npos; });
  return found == changes.end() ? nullptr : &*found;
}

TEST(GoalSeek, a_device_with_thrice_the_memory_bandwidth_at_the_same_price_costs_less) {
  const ServingQuestion question = small_question();
  HardwareChoice other = question.hardware.front();
  other.device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm");
  const std::vector<SoughtChange> changes = sought(question, {other});
  const SoughtChange* faster = named(changes, "h100_sxm");
  ASSERT_NE(faster, nullptr);
  EXPECT_GT(faster->capacity_ratio, 2);
  EXPECT_LT(faster->cost_ratio, 0.5);
  EXPECT_TRUE(faster->is_simulated);
  EXPECT_EQ(faster, &changes.front());
}

TEST(GoalSeek, no_change_is_offered_that_runs_out_of_memory_while_it_starts) {
  ServingQuestion question = small_question();
  const ServingFacts facts = engines_alone();
  const PlanPoint winner =
      *search_serving_layouts(question, *threaded_evaluator(question, facts, small_traffic(), 1)).winner();
  HardwareChoice other = question.hardware.front();
  other.device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm");
  ASSERT_FALSE(seek_goals(question, small_traffic(), facts, winner, {other}).changes.empty());
  question.memory_fraction = 0.999;
  EXPECT_TRUE(seek_goals(question, small_traffic(), facts, winner, {other}).changes.empty());
}

TEST(GoalSeek, changes_that_gain_nothing_are_left_out_and_others_say_what_they_change_beside) {
  const ServingQuestion question = small_question();
  HardwareChoice dear = question.hardware.front();
  dear.device.name = "dear_l4";
  dear.usd_per_hour = 10;
  const std::vector<SoughtChange> changes = sought(question, {dear});
  EXPECT_EQ(named(changes, "dear_l4"), nullptr);
  for (const SoughtChange& one : changes) {
    EXPECT_TRUE(one.capacity_ratio >= 1.1 || one.cost_ratio <= 1 / 1.1) << one.change;
    if (one.change.starts_with("weights")) {
      EXPECT_THAT(one.caution, HasSubstr("quality"));
    }
  }
  EXPECT_LE(std::count_if(changes.begin(), changes.end(), [](const SoughtChange& one) { return one.is_simulated; }), 2);
}

TEST(GoalSeek, at_a_rate_that_one_device_serves_a_faster_one_saves_nothing_and_a_cheaper_one_does) {
  ServingQuestion question = small_question();
  question.rate = 1;
  question.objective = PlanObjective::cost;
  HardwareChoice faster = question.hardware.front(), cheaper = question.hardware.front();
  faster.device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm");
  faster.usd_per_hour = 1.2;
  cheaper.device.name = "cheap_l4";
  cheaper.usd_per_hour = 0.4;
  const std::vector<SoughtChange> changes = sought(question, {faster, cheaper});
  const SoughtChange* fast = named(changes, "h100_sxm");
  ASSERT_NE(fast, nullptr);
  EXPECT_GT(fast->capacity_ratio, 2);
  EXPECT_LT(fast->cost_ratio, 0.6) << "of a request at full load";
  ASSERT_TRUE(fast->at_rate.has_value());
  EXPECT_DOUBLE_EQ(fast->at_rate->cost_ratio, 1.2) << "a whole device is paid for";
  const SoughtChange* cheap = named(changes, "cheap_l4");
  ASSERT_NE(cheap, nullptr);
  ASSERT_TRUE(cheap->at_rate.has_value());
  EXPECT_DOUBLE_EQ(cheap->at_rate->cost_ratio, 0.4);
  EXPECT_TRUE(cheap->at_rate->is_simulated) << "the best for the cost";
  EXPECT_GE(cheap->at_rate->requests_per_s, 1);
}

TEST(GoalSeek, a_model_with_a_prediction_layer_drafts_with_that) {
  ServingQuestion question = small_question();
  question.choices.separate_pools = false;
  // One of many layers, so that drafts cost little, and a limit that leaves little time for a step.
  const std::vector<Layer> layers = question.model.layers;
  for (int i = 0; i < 15; ++i) {
    question.model.layers.insert(question.model.layers.end(), layers.begin(), layers.end());
  }
  question.slos = parse_slos("ttft<2s@p95,tpot<1s@p95", "slo");
  const ServingFacts facts = engines_alone();
  EngineShelf shelf(question, facts, small_traffic());
  const ServingLayout one{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};
  const double alone_ms = LayoutSimulator(question, small_traffic(), shelf).judge(one).alone_ms[1];
  question.slos[1].limit_ms = 1.3 * alone_ms;
  const std::vector<SoughtChange> without = sought(question);
  EXPECT_NE(named(without, "EAGLE-3"), nullptr);
  EXPECT_EQ(named(without, "multi-token prediction"), nullptr);
  question.model.draft_layers = {question.model.layers.front()};
  const std::vector<SoughtChange> with = sought(question);
  EXPECT_EQ(named(with, "EAGLE-3"), nullptr);
  EXPECT_NE(named(with, "multi-token prediction"), nullptr);
}

TEST(GoalSeek, gains_are_counted_from_the_best_layout_of_the_unchanged_question) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = engines_alone();
  EngineShelf shelf(question, facts, small_traffic());
  const ServingLayout poor{.pool = {.engine = {.device = "l4", .engine = "vllm"}, .max_num_seqs = 1}, .decode = {}};
  const PlanPoint winner = LayoutSimulator(question, small_traffic(), shelf).evaluate(poor, Effort::quick);
  ASSERT_GT(winner.capacity.value, 0);
  const SoughtGoals goals = seek_goals(question, small_traffic(), facts, winner, {});
  ASSERT_TRUE(goals.base.has_value());
  EXPECT_FALSE(goals.base->is_winner);
  EXPECT_EQ(goals.base->layout.pool.max_num_seqs, 0);
  EXPECT_GT(goals.base->requests_per_s, 2 * winner.capacity.value);
  for (const SoughtChange& one : goals.changes) {
    EXPECT_DOUBLE_EQ(one.capacity_ratio, one.requests_per_s / goals.base->requests_per_s) << one.change;
  }
}

TEST(GoalSeek, a_limit_that_traffic_fills_is_raised_and_one_that_was_asked_for_is_kept_without_a_change) {
  ServingQuestion question = small_question();
  question.choices.max_num_seqs = {4};
  question.slos = parse_slos("ttft<2s@p95,tpot<50ms@p95", "slo");
  const ServingFacts facts = engines_alone();
  EngineShelf shelf(question, facts, small_traffic());
  const ServingLayout four{.pool = {.engine = {.device = "l4", .engine = "vllm"}, .max_num_seqs = 4}, .decode = {}};
  const PlanPoint winner = LayoutSimulator(question, small_traffic(), shelf).evaluate(four, Effort::quick);
  const SoughtGoals goals = seek_goals(question, small_traffic(), facts, winner, {});
  ASSERT_TRUE(goals.base.has_value());
  EXPECT_EQ(goals.base->layout.pool.max_num_seqs, 4);
  const SoughtChange* more = named(goals.changes, "steps of up to 16 sequences");
  ASSERT_NE(more, nullptr);
  EXPECT_EQ(more->layout.pool.max_num_seqs, 16);
  EXPECT_GT(more->capacity_ratio, 1.5);
}

TEST(GoalSeek, weights_in_four_bits_are_multiplied_as_such_where_the_device_can) {
  ServingQuestion question = small_question();
  question.choices.max_num_seqs = {16};
  question.slos = parse_slos("ttft<2s@p95,tpot<50ms@p95", "slo");
  question.hardware.front().most_devices = 1;
  for (Layer& layer : question.model.layers) std::get<Mlp>(layer.feed_forward).width = 100'000;
  const ServingFacts facts = engines_alone();
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const auto changes_on = [&](const std::string& device) {
    question.hardware.front().device = hardware.device(device);
    EngineShelf shelf(question, facts, small_traffic());
    const ServingLayout sixteen{.pool = {.engine = {.device = device, .engine = "vllm"}, .max_num_seqs = 16},
                                .decode = {}};
    const PlanPoint winner = LayoutSimulator(question, small_traffic(), shelf).evaluate(sixteen, Effort::quick);
    return seek_goals(question, small_traffic(), facts, winner, {}).changes;
  };
  EXPECT_NE(named(changes_on("b200_sxm"), "weights in nvfp4"), nullptr);
  EXPECT_EQ(named(changes_on("h100_sxm"), "fp4"), nullptr);
}

TEST(GoalSeek, ends_with_what_it_has_when_nobody_waits) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  const ServingSearchResult result =
      search_serving_layouts(question, *threaded_evaluator(question, facts, small_traffic(), 1));
  int64_t checks = 0;
  const auto stop_at = [&](int64_t last) {
    checks = 0;
    return seek_goals(question, small_traffic(), facts, *result.winner(), {}, [&, last] {
      if (++checks == last) throw SearchStopped();
    });
  };
  EXPECT_FALSE(stop_at(-1).stopped);
  const int64_t all = checks;
  EXPECT_TRUE(stop_at(1).stopped);
  EXPECT_TRUE(stop_at(1).changes.empty());
  const SoughtGoals nearly = stop_at(all);
  EXPECT_TRUE(nearly.stopped);
  EXPECT_FALSE(nearly.changes.empty());
}

}  // namespace foretoken::goal_seek_test
