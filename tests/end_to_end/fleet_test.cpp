// Fleets from the command line: what they answer, and what they refuse.
#include <gtest/gtest.h>

#include "base/json.h"
#include "run.h"

namespace foretoken::fleet_test {

Outcome serve(const std::string& flags) {
  return run_foretoken("serve --model Llama-3.1-8B --device h100_sxm --no-intervals " + flags);
}

Json answer(const std::string& flags) {
  const Outcome run = serve(flags + " --json");
  EXPECT_EQ(run.status, 0) << run.err;
  return parse_json(run.out, "answer");
}

double number(const Json& json, const std::string& key) {
  return json.find(key)->number();
}

TEST(FleetCommand, a_fleet_that_may_not_change_is_the_plain_run) {
  const std::string load = "--request-rate 30 --num-prompts 200 --replicas 3 --router least_outstanding ";
  Json plain = answer(load);
  const Json fixed = answer(load + "--autoscaler reactive --min-replicas 3 --max-replicas 3 --cold-start 10");
  EXPECT_EQ(number(*fixed.find("fleet"), "starts"), 0);
  plain.set("fleet", *fixed.find("fleet"));
  EXPECT_EQ(plain.dump(), fixed.dump());
}

TEST(FleetCommand, an_autoscaler_follows_a_burst_and_says_what_it_cost) {
  const std::string flags =
      "--request-rate 40 --num-prompts 1500 --autoscaler reactive --max-replicas 6 --scale-interval 2 --cold-start 5 "
      "--scale-target 16 --router least_outstanding";
  const Json json = answer(flags);
  const Json& fleet = *json.find("fleet");
  EXPECT_GT(number(fleet, "starts"), 0);
  EXPECT_EQ(number(fleet, "cold_start_s"), 5);
  EXPECT_EQ(number(*fleet.find("replicas_serving"), "least"), 1);
  EXPECT_GT(number(*fleet.find("replicas_serving"), "most"), 1);
  EXPECT_GT(number(fleet, "gpu_hours"), 0);
  EXPECT_EQ(number(json, "completed"), 1500);
  const Outcome text = serve(flags);
  for (const std::string shown : {"Fleet", "Replicas serving", "GPU-hours", "Cold starts", "serving replicas"}) {
    EXPECT_NE(text.out.find(shown), std::string::npos) << shown;
  }
}

TEST(FleetCommand, requests_survive_failures_unless_they_are_not_tried_again) {
  const std::string flags = "--request-rate 10 --num-prompts 500 --replicas 2 --gpu-mtbf 0.004 --cold-start 3 ";
  const Json again = answer(flags);
  EXPECT_EQ(number(again, "completed"), 500);
  EXPECT_GT(number(*again.find("fleet"), "failures"), 0);
  EXPECT_GT(number(*again.find("fleet"), "retried_requests"), 0);
  const Json lost = answer(flags + "--no-retry");
  EXPECT_LT(number(lost, "completed"), 500);
  EXPECT_EQ(number(lost, "completed") + number(*lost.find("failures"), "a replica that failed"), 500);
}

TEST(FleetCommand, goals_by_priority_are_counted) {
  const Json json = answer(
      "--request-rate 60 --num-prompts 600 --max-num-seqs 64 --priority-shares 0.3,0.7 --scheduling-policy deadline "
      "--ttft-goals 300,2000");
  ASSERT_EQ(json.find("ttft_goals")->items().size(), 2u);
  double requests = 0;
  for (const Json& goal : json.find("ttft_goals")->items()) requests += number(goal, "requests");
  EXPECT_EQ(requests, 600);
}

TEST(FleetCommand, flags_without_their_feature_are_refused) {
  struct Case {
    std::string flags, mentions;
  };
  for (const Case& one : std::vector<Case>{
           {"--autoscaler reactve", "reactive"},
           {"--max-replicas 4", "--autoscaler none"},
           {"--autoscaler planner --scale-target 4", "--scale-target"},
           {"--autoscaler reactive --replica-rate 4", "--replica-rate"},
           {"--cold-start 4", "no replica starts"},
           {"--gpu-mtbf 5 --cold-start 4 --engine-start-time 3", "--engine-start-time"},
           {"--no-retry", "needs --gpu-mtbf"},
           {"--drain-at 5,x", "x"},
           {"--admission-shares 1,0.5", "--admission-limit"},
           {"--admission-limit 4 --admission-shares 2", "from 0 to 1"},
           {"--region-swing 0.5", "needs --region"},
           {"--region name=a,shares=2", "share"},
           {"--region name=a,share=0", "above 0"},
           {"--region name=a --spill-limit 3", "--region-policy nearest"},
           {"--region name=a --replicas 3", "replicas=N"},
           {"--autoscaler reactive --replicas 5 --max-replicas 3", "--max-replicas 3"},
           {"--gpu-mtbf 5 --prefill-pool count=1 --decode-pool count=1", "only an autoscaler"},
           {"--autoscaler reactive --replica count=1 --replica count=1", "identical replicas"},
           {"--scheduling-policy deadline", "--ttft-goals"},
           {"--ttft-goals 500", "deadline"},
       }) {
    SCOPED_TRACE(one.flags);
    const Outcome run = serve("--num-prompts 5 " + one.flags);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(one.mentions), std::string::npos) << run.err;
  }
}

}  // namespace foretoken::fleet_test
