// Searches of accelerator designs from the command line: what they answer, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::plan_accel_test {

using testing::HasSubstr;

class PlanAccelCommand : public CommandTest {
 protected:
  static Outcome plan(const std::string& flags) {
    return run_foretoken("plan accel --arch gemm_array_16x16 --gemm 64x96x32 --tries 200 --final-tries 2000 " + flags);
  }
};

TEST_F(PlanAccelCommand, answers_in_a_sentence_and_writes_what_was_asked_for) {
  const Outcome run = plan("--evaluations 20 --csv " + path("designs.csv") + " --html " + path("plan.html") +
                           " --svg " + path("curve.svg"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(in_one_line(run.out), HasSubstr("of the base's edp"));
  EXPECT_THAT(in_one_line(run.out), HasSubstr("not proven to be the best of 225 designs"));
  EXPECT_THAT(run.out, HasSubstr("GLB.capacity"));
  EXPECT_THAT(read_file(path("designs.csv"), 1U << 24U), HasSubstr("method,seed,evaluation,GLB.capacity,RF.capacity"));
  EXPECT_THAT(read_file(path("plan.html"), 1U << 24U), HasSubstr("<svg"));
  EXPECT_THAT(read_file(path("curve.svg"), 1U << 24U), HasSubstr("designs evaluated"));
}

TEST_F(PlanAccelCommand, the_design_it_writes_costs_what_it_said) {
  const std::string file = path("best.json");
  const Outcome run = plan("--evaluations 20 --json --out-design " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  const Json plan_document = parse_json(run.out, "plan");
  const JsonView costs = JsonView(plan_document, "plan").at("winner").at("costs");
  const Outcome again = run_foretoken("accel --arch " + file + " --gemm 64x96x32 --tries 2000 --json");
  ASSERT_EQ(again.status, 0) << again.err;
  const Json document = parse_json(again.out, "accel");
  EXPECT_EQ(JsonView(document, "accel").at("energy_pj").number(), costs.at("energy_pj").number());
  EXPECT_EQ(JsonView(document, "accel").at("cycles").number(), costs.at("cycles").number());
}

TEST_F(PlanAccelCommand, methods_are_compared_and_threads_change_nothing) {
  const Outcome run = plan("--compare --evaluations 24 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  EXPECT_EQ(JsonView(document, "plan").at("methods").items().size(), 3);
  EXPECT_EQ(plan("--compare --evaluations 24 --json --threads 1").out, run.out);
}

TEST_F(PlanAccelCommand, of_several_seeds_medians_and_quartiles_are_shown) {
  const Outcome run = plan("--compare --seeds 3 --evaluations 20 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  const auto methods = JsonView(document, "plan").at("methods").items();
  ASSERT_EQ(methods.size(), 9);
  EXPECT_EQ(methods[1].at("seed").integer(), 2);
  const Outcome text = plan("--compare --seeds 3 --evaluations 20");
  EXPECT_THAT(text.out, HasSubstr("median (quartiles) of 3 seeds"));
  EXPECT_THAT(text.out, HasSubstr("after 20"));
}

TEST_F(PlanAccelCommand, too_few_tries_to_rank_designs_by_are_said) {
  const std::string work =
      "plan accel --arch eyeriss_v1 --conv 64x64x14x14x3 --knob GLB.capacity=50K,100K --evaluations 2 ";
  const Outcome rough = run_foretoken(work + "--tries 20 --final-tries 20000");
  ASSERT_EQ(rough.status, 0) << rough.err;
  EXPECT_THAT(in_one_line(rough.out), HasSubstr("preferred designs that are easy to map"));
  const Outcome fair = run_foretoken(work + "--tries 2000 --final-tries 2000");
  EXPECT_THAT(in_one_line(fair.out), testing::Not(HasSubstr("easy to map")));
}

TEST_F(PlanAccelCommand, more_bandwidth_has_a_price) {
  const Outcome run = run_foretoken(
      "plan accel --arch nvdla_small --gemm 64x64x64 --knob DRAM.bandwidth=1,2 --method exhaustive --objective delay "
      "--tries 200 --final-tries 200");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(in_one_line(run.out),
              HasSubstr("DRAM.bandwidth 2 instead of 1 words a cycle: its interface takes 0.226 mm2"));
}

TEST_F(PlanAccelCommand, two_objectives_have_a_frontier) {
  const Outcome run = plan("--objective delay,energy --evaluations 30 --method genetic");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Designs that no other beats in both"));
}

TEST_F(PlanAccelCommand, limits_that_nothing_keeps_are_said) {
  const Outcome run = plan("--most-area 0.0001 --evaluations 10");
  ASSERT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.out, testing::StartsWith("No design around "));
  EXPECT_THAT(in_one_line(run.out), HasSubstr("within the limits: 0 of "));
}

TEST_F(PlanAccelCommand, wrong_flags_are_named) {
  const auto refused = [](const std::string& flags, const std::string& says) {
    const Outcome run = plan(flags);
    EXPECT_EQ(run.status, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(says)) << flags;
  };
  refused("--knob GLBS.capacity=1K", "did you mean GLB");
  refused("--method exhaustive", "225 designs");
  refused("--method bayesan", "bayesian");
  refused("--objective speed", "energy, delay, latency or edp");
  refused("--objective edp,edp", "two that differ");
  refused("--compare --method random", "--compare");
  refused("--seeds 4", "--compare");
  refused("--input-len 5", "--model");
  refused("--knob RF.x=8 --knob RF.x=16", "one knob for a number");
}

}  // namespace foretoken::plan_accel_test
