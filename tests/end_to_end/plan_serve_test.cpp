// Plans of services from the command line: what they answer, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

class PlanServeCommand : public CommandTest {
 protected:
  // Few layouts, so that a search takes a moment.
  static Outcome plan(const std::string& flags) {
    return run_foretoken(
        "plan serve --model Llama-3.1-8B --hardware h100_sxm:2 --slo ttft:500,tpot:50 --engines vllm "
        "--quantizations config --kv-cache-dtype auto -pp 1 --max-num-seqs 0 --max-num-batched-tokens 0 "
        "--dataset-name lognormal --random-input-len 512 --random-output-len 64 --num-prompts 1500 "
        "--most-simulated 4 --finalists 1 " +
        flags);
  }
};

TEST_F(PlanServeCommand, answers_in_a_sentence_with_the_line_that_starts_it) {
  const Outcome text =
      plan("--html " + path("plan.html") + " --trace-out " + path("trace.json") + " --csv " + path("runs.csv"));
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Serve meta-llama/Llama-3.1-8B on 2 x NVIDIA H100"));
  EXPECT_THAT(text.out, HasSubstr("vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size"));
  const std::string html = read_file(path("plan.html"), 1U << 24U);
  for (const char* part :
       {"Serve meta-llama/Llama-3.1-8B on 2 x NVIDIA H100", "To start it", "Speed for a user against work of a GPU",
        "The best layouts", "Latency against load", ">capacity</text>", ">limit</text>", "The winner at",
        "How long requests wait", "The run over time", "Where the time goes", "Roofline", "Memory of a device",
        "How far to trust it", "Serving engine", "To reproduce", "foretoken plan serve --model Llama-3.1-8B"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, testing::Not(HasSubstr("nan")));
  EXPECT_THAT(read_file(path("runs.csv"), 1U << 24U), HasSubstr("key,devices"));
  EXPECT_THAT(read_file(path("trace.json"), 1U << 28U), HasSubstr("traceEvents"));

  const Outcome json = plan("--json");
  const Json document = parse_json(json.out, "plan");
  const JsonView capacity = JsonView(document, "plan").at("winner").at("capacity_requests_per_s");
  EXPECT_GT(capacity.at("low").number(), 0);
  EXPECT_LE(capacity.at("low").number(), capacity.at("value").number());
  EXPECT_GE(capacity.at("high").number(), capacity.at("value").number());
  EXPECT_EQ(plan("--json --threads 1").out, json.out);
}

TEST_F(PlanServeCommand, a_rate_is_served_by_no_more_devices_than_it_needs) {
  const Outcome run = plan("--request-rate 2 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  EXPECT_EQ(JsonView(document, "plan").at("winner").at("devices").integer(), 1);
  const Outcome none = plan("--request-rate 100000");
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("None of"));
  EXPECT_EQ(plan("--request-rate 100000 --html " + path("none.html")).status, 0);
  const std::string html = read_file(path("none.html"), 1U << 24U);
  EXPECT_THAT(html, HasSubstr("None of"));
  EXPECT_THAT(html, HasSubstr("How far to trust it"));
}

TEST_F(PlanServeCommand, wrong_flags_are_named) {
  const auto refused = [](const std::string& flags) {
    const Outcome run = run_foretoken("plan serve --model Llama-3.1-8B " + flags);
    EXPECT_EQ(run.status, 2) << flags;
    return run.err;
  };
  EXPECT_THAT(refused("--slo ttft:500"), HasSubstr("--hardware"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo tfft:500"), HasSubstr("ttft"));
  EXPECT_THAT(refused("--hardware h100_sxm --slo ttft:500"), HasSubstr("DEVICE:COUNT"));
  EXPECT_THAT(refused("--hardware h100_sxm:2,h100_sxm:4 --slo ttft:500"), HasSubstr("each device once"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --price h100_sxm --slo ttft:500"), HasSubstr("DEVICE=USD"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo ttft:500 --engines vlm"), HasSubstr("vllm"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo ttft:500 --quantizations fp9"), HasSubstr("fp8"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo ttft:500 --dataset-name sessions"),
              HasSubstr("wait for each other"));
}

}  // namespace
}  // namespace foretoken
