#include "plan/serving/layout_simulation.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"
#include "serving/load/load_spec.h"

namespace foretoken::layout_simulation_test {

const ServingLayout one_engine{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};

TEST(LayoutSimulation, a_curve_tells_the_same_at_capacity_as_the_search_for_it) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, small_traffic());
  LayoutSimulator simulator(question, small_traffic(), shelf);
  const PlanPoint full = simulator.evaluate(one_engine, Effort::promised);
  ASSERT_NE(full.at_capacity(), nullptr);
  for (const Effort effort : {Effort::curve, Effort::long_curve}) {
    // Another simulator, which has none of those runs.
    LayoutSimulator fresh(question, small_traffic(), shelf);
    const PlanPoint curve = fresh.evaluate(one_engine, effort);
    const PlanRun* same = curve.at_rate(full.capacity.value);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->achieved_ms, full.at_capacity()->achieved_ms);
  }
}

// Other requests come at every rate of a curve: two rates side by side would differ by those alone.
TEST(LayoutSimulation, a_curve_has_no_rate_beside_the_one_asked_for) {
  ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, small_traffic());
  const double capacity =
      LayoutSimulator(question, small_traffic(), shelf).evaluate(one_engine, Effort::promised).capacity.value;
  question.rate = 0.905 * capacity;
  const PlanPoint curve = LayoutSimulator(question, small_traffic(), shelf).evaluate(one_engine, Effort::curve);
  ASSERT_NE(curve.at_rate(*question.rate), nullptr);
  for (const PlanRun& run : curve.runs) {
    EXPECT_TRUE(run.rate == *question.rate || std::abs(run.rate / *question.rate - 1) > 0.02) << run.rate;
  }
}

TEST(LayoutSimulation, rates_at_which_short_runs_contradict_the_promise_are_judged_as_it_was) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  int64_t judged_again = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    const Traffic traffic(random_requests(seed, 400, 10, 600, 60));
    EngineShelf shelf(question, facts, traffic);
    LayoutSimulator simulator(question, traffic, shelf);
    const PlanPoint promised = simulator.evaluate(one_engine, Effort::promised);
    for (const PlanRun& run : simulator.evaluate(one_engine, Effort::curve).runs) {
      const bool is_judged_as_promised = run.requests >= 6 * 5000;
      if (run.attained != (run.rate <= promised.capacity.value)) {
        EXPECT_TRUE(is_judged_as_promised) << seed << " " << run.rate;
      }
      if (is_judged_as_promised && run.rate != promised.capacity.value) ++judged_again;
    }
  }
  EXPECT_GT(judged_again, 0);
}

TEST(LayoutSimulation, pools_hand_over_as_they_do_where_a_user_serves_them) {
  ServingQuestion question = small_question();
  HardwareChoice other = question.hardware[0];
  other.device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("l40s");
  question.hardware.push_back(other);
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, small_traffic());
  const LayoutSimulator simulator(question, small_traffic(), shelf);
  ServingLayout layout{.pool = {.engine = {.device = "l4", .engine = "sglang"}},
                       .decode = EnginePool{.engine = {.device = "l4", .engine = "sglang"}, .replicas = 3}};
  const auto between = [&] {
    return simulator.run_request(layout, shelf.engines(layout), 1, 10).config.disaggregation;
  };
  const std::optional<Disaggregation> alike = between();
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike->first_token, FirstToken::transfer);
  EXPECT_GT(alike->first_token_doubt.high, 1);
  ASSERT_EQ(alike->ports.size(), 4U);
  EXPECT_EQ(alike->ports.back().bandwidth.value(), 450e9) << "the links of the node";
  layout.decode->engine.device = "l40s";
  EXPECT_EQ(between()->ports.back().bandwidth.value(), 50e9) << "a network card: other GPUs are in another node";
}

LoadMaker begun_conversations(double per_s, int64_t count) {
  return make_load({.num_prompts = count,
                    .arrivals = {.rate = per_s},
                    .dataset = Dataset::sessions,
                    .input_len = 60,
                    .output_len = 20,
                    .range_ratio = 0.5,
                    .sessions = {.turns = 3, .think_s = 0.5}});
}

Traffic conversations(uint64_t seed) {
  constexpr int64_t drawn = 300;
  const auto source = begun_conversations(1, drawn)(seed);
  return {Traffic::taken_from(*source, 10'000), drawn, {.begun = begun_conversations, .seed = seed}};
}

TEST(LayoutSimulation, conversations_are_simulated_as_a_run_of_them_at_the_rate_found) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  constexpr uint64_t seed = 7;
  const Traffic traffic = conversations(seed);
  EXPECT_EQ(traffic.requests_each(), 3);
  EXPECT_NEAR(traffic.pauses_s(), 1, 0.2);
  EngineShelf shelf(question, facts, traffic);
  LayoutSimulator simulator(question, traffic, shelf);
  const PlanPoint point = simulator.evaluate(one_engine, Effort::full);
  const PlanRun* found = point.at_capacity();
  ASSERT_NE(found, nullptr);
  ASSERT_EQ(found->requests % 3, 0);
  ServingRunRequest request =
      simulator.run_request(one_engine, shelf.engines(one_engine), found->rate, found->requests);
  request.load = begun_conversations(found->rate / 3, found->requests / 3);
  request.config.seed = seed;
  const ServingMetrics metrics = run_metrics(request);
  EXPECT_EQ(metrics.completed, found->requests);
  for (size_t i = 0; i < question.slos.size(); ++i) {
    EXPECT_EQ(achieved_ms(question.slos[i], metrics, request.percentiles), found->achieved_ms[i]);
  }
}

TEST(LayoutSimulation, runs_last_several_conversations) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  const Traffic traffic = conversations(0);
  EngineShelf shelf(question, facts, traffic);
  const LayoutSimulator simulator(question, traffic, shelf);
  constexpr double rate = 1000;
  EXPECT_GT(static_cast<double>(simulator.requests_for(Effort::quick, rate)) / rate, 4 * traffic.pauses_s());
}

TEST(LayoutSimulation, a_closed_loop_is_judged_with_all_its_requests_in_flight) {
  const LoadSpec load{
      .num_prompts = 6000, .arrivals = {.rate = 1}, .input_len = 100, .output_len = 30, .range_ratio = 0.5};
  const Traffic traffic(Traffic::taken_from(*make_load(load)(0), load.num_prompts));
  const ServingFacts facts = roofline_facts();
  ServingQuestion question = small_question();
  const auto found = [&](int64_t in_flight) {
    question.in_flight = in_flight;
    EngineShelf shelf(question, facts, traffic);
    return LayoutSimulator(question, traffic, shelf).evaluate(one_engine, Effort::quick);
  };
  const PlanPoint many = found(100'000);
  EXPECT_EQ(many.capacity.value, 0);
  ASSERT_EQ(many.runs.size(), 1U) << "tells how near it comes";
  EXPECT_FALSE(many.runs.front().attained);
  const PlanPoint few = found(4);
  ASSERT_EQ(few.runs.size(), 1U);
  const PlanRun& run = few.runs.front();
  EXPECT_TRUE(run.attained);
  EXPECT_EQ(run.in_flight, 4);
  EXPECT_EQ(few.capacity.value, run.rate);
  // The same as the command that serves a benchmark with as many in flight.
  LoadSpec bench = load;
  bench.num_prompts = run.requests;
  bench.arrivals.rate = std::numeric_limits<double>::infinity();
  bench.max_concurrency = 4;
  EngineShelf shelf(question, facts, traffic);
  const LayoutSimulator simulator(question, traffic, shelf);
  ServingRunRequest request = simulator.run_request(one_engine, shelf.engines(one_engine), 4, run.requests);
  request.load = make_load(bench);
  const ServingMetrics metrics = run_metrics(request);
  EXPECT_EQ(metrics.request_throughput, run.rate);
  EXPECT_EQ(metrics.output_throughput, run.output_tokens_per_s);
  for (size_t i = 0; i < question.slos.size(); ++i) {
    EXPECT_EQ(achieved_ms(question.slos[i], metrics, request.percentiles), run.achieved_ms[i]);
  }
}

TEST(LayoutSimulation, an_unknown_acceptance_of_drafts_widens_the_interval) {
  ServingQuestion question = small_question();
  SpeculativeConfig config{.method = &draft_method("eagle3"), .num_speculative_tokens = 3};
  config.assume_usual();
  ServingLayout drafting = one_engine;
  drafting.pool.engine.speculates = true;
  const ServingFacts facts = roofline_facts();
  const auto found = [&](bool is_known, Effort effort) {
    if (is_known) config.unknown_acceptance.clear();
    question.drafts = DraftChoice{.config = config, .model = {}};
    EngineShelf shelf(question, facts, small_traffic());
    return LayoutSimulator(question, small_traffic(), shelf).evaluate(drafting, effort).capacity;
  };
  const Headline brief = found(false, Effort::ranged), promised = found(false, Effort::promised);
  for (const auto& [unknown, effort] : {std::pair(brief, Effort::ranged), std::pair(promised, Effort::promised)}) {
    const Headline known = found(true, effort);
    ASSERT_GT(known.value, 0);
    EXPECT_EQ(unknown.value, known.value);
    EXPECT_LE(unknown.low, known.low);
    EXPECT_GT(unknown.high, 1.02 * known.high);
  }
}

}  // namespace foretoken::layout_simulation_test
