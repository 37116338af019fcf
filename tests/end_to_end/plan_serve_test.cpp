// Plans of services from the command line: what they answer, and what they refuse.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::plan_serve_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PlanServeCommand : public CommandTest {
 protected:
  // Few layouts of engines that hold few requests, so that a search takes a moment.
  static Outcome plan(const std::string& flags) {
    return run_foretoken(
        "plan serve --model Llama-3.1-8B --hardware h100_sxm:2 --slo ttft:500,tpot:50 --engines vllm "
        "--quantizations config --kv-cache-dtype auto -pp 1 --max-num-seqs 16 --max-num-batched-tokens 0 "
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
  for (const char* part : {"Serve meta-llama/Llama-3.1-8B on 2 x NVIDIA H100",
                           "To start it",
                           "Speed per user against throughput per GPU",
                           "The best layouts",
                           "Latency against load",
                           ">capacity</text>",
                           ">limit</text>",
                           "The winner at",
                           "How long requests wait",
                           "What a slow request waits for",
                           "part of the p99 TTFT",
                           "(MFU)",
                           "The run over time",
                           "Where the time goes",
                           "Roofline",
                           "Memory per device",
                           "Energy and cost",
                           "Facility, per output token",
                           "How far to trust it",
                           "Serving engine",
                           "To reproduce",
                           "foretoken plan serve --model Llama-3.1-8B"}) {
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
  const JsonView joules = JsonView(document, "plan").at("winner").at("run").at("joules_per_output_token");
  EXPECT_GT(joules.at("low").number(), 0);
  EXPECT_GT(joules.at("high").number(), joules.at("low").number());
  EXPECT_EQ(plan("--json --threads 1").out, json.out);
}

TEST_F(PlanServeCommand, conversations_are_planned_at_the_rate_that_serve_is_given) {
  const std::string load =
      " --model Llama-3.1-8B --dataset-name sessions --turns 3 --think-time 1 --random-input-len 256 "
      "--random-output-len 32 --max-num-seqs 16";
  const Outcome plan = run_foretoken(
      "plan serve --hardware h100_sxm:1 --slo ttft:300,tpot:50 --engines vllm --quantizations config --kv-cache-dtype "
      "auto --max-num-batched-tokens 0 --most-simulated 1 --finalists 1 --json" +
      load);
  ASSERT_EQ(plan.status, 0) << plan.err;
  const Json document = parse_json(plan.out, "plan");
  const JsonView answer(document, "plan");
  EXPECT_EQ(answer.at("requests_per_conversation").number(), 3);
  EXPECT_THAT(answer.at("sentence").string(), HasSubstr("conversations/s"));
  const JsonView run = answer.at("winner").at("run");
  const double per_s = run.at("conversations_per_s").number();
  EXPECT_NEAR(per_s * 3, run.at("rate").number(), 1e-9 * per_s);
  const std::string line = answer.at("commands").items()[0].at("line").string();
  const size_t length = line.find("--max-model-len");
  ASSERT_NE(length, std::string::npos) << line;
  // The run is of six samples of conversations; this one is of the first.
  const Outcome serve = run_foretoken(fmt::format(
      "serve --device h100_sxm --engine vllm --request-rate {} --num-prompts {} {} --no-intervals --json{}", per_s,
      run.at("requests").integer() / 18, line.substr(length, line.find(' ', length + 16) - length), load));
  ASSERT_EQ(serve.status, 0) << serve.err;
  const Json served = parse_json(serve.out, "serve");
  const JsonView metrics(served, "serve");
  EXPECT_EQ(metrics.at("completed").integer() * 6, run.at("requests").integer());
  const double ttft_ms = run.at("ttft<300ms@p99").number(), tpot_ms = run.at("tpot<50ms@p99").number();
  EXPECT_NEAR(metrics.at("p99_ttft_ms").number(), ttft_ms, 0.2 * ttft_ms);
  EXPECT_NEAR(metrics.at("p99_tpot_ms").number(), tpot_ms, 0.02 * tpot_ms);
}

TEST_F(PlanServeCommand, requests_in_flight_are_planned_for_as_serve_simulates_them) {
  const std::string load =
      " --model Llama-3.1-8B --max-concurrency 24 --dataset-name random --random-input-len 256 "
      "--random-output-len 64 --max-num-seqs 16";
  const std::string question =
      "plan serve --hardware h100_sxm:2 --engines vllm --quantizations config --kv-cache-dtype auto -tp 1 -pp 1 "
      "--max-num-batched-tokens 0 --no-disaggregate --most-simulated 4 --finalists 1" +
      load;
  const auto answer_of = [&](const std::string& slo) {
    const Outcome plan = run_foretoken(question + " --json --slo " + slo);
    EXPECT_EQ(plan.status, 0) << plan.err;
    return parse_json(plan.out, "plan");
  };
  // 24 requests wait for the 16 places of one engine; two engines have places for all.
  const Json loose = answer_of("e2e:20000");
  EXPECT_EQ(JsonView(loose, "plan").at("winner").at("devices").integer(), 1);
  const Json document = answer_of("ttft:300");
  const JsonView answer(document, "plan");
  EXPECT_EQ(answer.at("in_flight").integer(), 24);
  EXPECT_THAT(answer.at("sentence").string(), HasSubstr("with 24 requests in flight"));
  EXPECT_EQ(answer.at("winner").at("devices").integer(), 2);
  const JsonView run = answer.at("winner").at("run");
  EXPECT_EQ(run.at("in_flight").integer(), 24);
  const std::string line = answer.at("commands").items()[0].at("line").string();
  const size_t length = line.find("--max-model-len");
  ASSERT_NE(length, std::string::npos) << line;
  // The run is of six samples of requests, which are all alike.
  const Outcome serve = run_foretoken(
      fmt::format("serve --device h100_sxm --engine vllm --replicas 2 --num-prompts {} {} --no-intervals --json{}",
                  run.at("requests").integer() / 6, line.substr(length, line.find(' ', length + 16) - length), load));
  ASSERT_EQ(serve.status, 0) << serve.err;
  const Json served = parse_json(serve.out, "serve");
  const double tokens_per_s = run.at("output_tokens_per_s").number();
  EXPECT_NEAR(JsonView(served, "serve").at("output_throughput").number(), tokens_per_s, 1e-6 * tokens_per_s);
}

TEST_F(PlanServeCommand, a_rate_is_served_by_no_more_devices_than_it_needs) {
  const Outcome run = plan("--request-rate 2 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  EXPECT_EQ(JsonView(document, "plan").at("winner").at("devices").integer(), 1);
  const JsonView why = JsonView(document, "plan").at("explanation");
  const double parts = why.at("queue_ms").number() + why.at("prefill_ms").number() + why.at("host_ms").number() +
                       why.at("transfer_ms").number();
  EXPECT_NEAR(parts, why.at("ttft_ms").number(), 1e-6);
  EXPECT_GT(why.at("memory_bandwidth_utilization").number({.least = 0, .most = 1}), 0);
  const Outcome none = plan("--request-rate 100000 --html " + path("none.html"));
  EXPECT_EQ(none.status, 3) << none.err;
  EXPECT_THAT(none.out, HasSubstr("None of"));
  EXPECT_THAT(in_one_line(none.out), HasSubstr("The best layout sustains"));
  EXPECT_THAT(in_one_line(none.out), HasSubstr("of these devices"));
  EXPECT_THAT(in_one_line(none.out), HasSubstr("below rate: "));
  EXPECT_THAT(in_one_line(none.out), HasSubstr("vllm on h100_sxm: sustains "));
  const std::string html = read_file(path("none.html"), 1U << 24U);
  EXPECT_THAT(html, HasSubstr("None of"));
  EXPECT_THAT(html, HasSubstr("How far to trust it"));
}

TEST_F(PlanServeCommand, a_search_without_time_answers_by_closed_form_and_says_so) {
  const Outcome run = run_foretoken(
      "plan serve --model Llama-3.1-8B --hardware h100_sxm:2 --slo ttft:500,tpot:50 --engines vllm --time-limit 0.01 "
      "--json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json answer = parse_json(run.out, "answer");
  EXPECT_TRUE(answer.find("stopped")->boolean());
  EXPECT_THAT(run.out, testing::HasSubstr("by closed form"));
}

TEST_F(PlanServeCommand, the_search_for_changes_keeps_the_time_limit) {
  const Outcome run = run_foretoken(
      "plan serve --model Llama-3.1-8B --hardware h100_sxm:1 --slo ttft:500,tpot:50 --engines vllm --time-limit 0.01 "
      "--goal-seek --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(parse_json(run.out, "answer").find("goal_seek_stopped")->boolean());
}

TEST_F(PlanServeCommand, changes_are_also_sought_where_no_layout_serves_the_rate) {
  const Outcome run = plan("--request-rate 100000 --goal-seek");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("No layout sustains the rate. Compared with"));
  EXPECT_THAT(run.out, HasSubstr("change"));
  const Outcome slow = run_foretoken(
      "plan serve --model Llama-3.1-8B --hardware h100_sxm:1 --slo ttft:0.01,tpot:50 --engines vllm --num-prompts 200 "
      "--goal-seek");
  EXPECT_EQ(slow.status, 3) << slow.err;
  EXPECT_THAT(slow.out, HasSubstr("--goal-seek has no layout"));
}

TEST_F(PlanServeCommand, host_memory_and_adapters_reach_the_launch_line_and_come_back) {
  const Outcome run = plan(
      "--kv-offloading-per-gpu 64 -tp 2 --random-prefix-len 1024 "
      "--prefix-repetition-num-prefixes 50 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  const std::string line = document.find("commands")->items().front().find("line")->string();
  EXPECT_THAT(line, HasSubstr("--kv-offloading-size 128 --kv-offloading-backend native"));
  const Outcome back = run_foretoken(
      "serve --device h100_sxm --request-rate 2 "
      "--num-prompts 20 --json --from \"" +
      line + "\"");
  ASSERT_EQ(back.status, 0) << back.err;
  EXPECT_THAT(back.out, HasSubstr("kv_tiers"));
  // Where it is of no use, no order of the sizes recommends it.
  const Outcome useless = plan("--kv-offloading-per-gpu 64,0 -tp 2 --no-disaggregate --json");
  ASSERT_EQ(useless.status, 0) << useless.err;
  const Json plain = parse_json(useless.out, "plan");
  EXPECT_THAT(plain.find("commands")->items().front().find("line")->string(), testing::Not(HasSubstr("kv-offloading")));

  const Outcome adapted = plan(
      "--enable-lora --num-adapters 20 "
      "--max-lora-rank 32 --no-disaggregate --json");
  ASSERT_EQ(adapted.status, 0) << adapted.err;
  const Json with = parse_json(adapted.out, "plan");
  const std::string lora = with.find("commands")->items().front().find("line")->string();
  EXPECT_THAT(lora, HasSubstr("--enable-lora --max-loras"));
  EXPECT_THAT(lora, HasSubstr("--max-lora-rank 32 --max-cpu-loras 20"));
  const Outcome served = run_foretoken(
      "serve --device h100_sxm --request-rate 2 --num-prompts 20 "
      "--num-adapters 20 --json --from \"" +
      lora + "\"");
  ASSERT_EQ(served.status, 0) << served.err;
  EXPECT_THAT(served.out, HasSubstr("\"lora\""));
  EXPECT_EQ(plan("--max-loras 4").status, 2) << "without adapters";
}

TEST_F(PlanServeCommand, an_answer_stands_where_its_file_cannot_be_written) {
  const std::string flags =
      "plan serve --quick --model Llama-3.1-8B --hardware h100_sxm:2 --slo ttft:500,tpot:50 --engines trtllm --launch ";
  const Outcome run = run_foretoken(flags + "dynamo --launch-out " + path("dynamo.yaml"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("trtllm-serve"));
  EXPECT_THAT(run.out, HasSubstr("note: No file was written for --launch dynamo."));
  EXPECT_THAT(run.out, HasSubstr("Use --launch kubernetes"));
  EXPECT_THROW(read_file(path("dynamo.yaml"), 1U << 20U), std::exception);
  EXPECT_EQ(run_foretoken(flags + "kubernetes --no-disaggregate").status, 0);
}

TEST_F(PlanServeCommand, a_day_has_the_cost_of_fixed_and_of_autoscaled_replicas) {
  const Outcome run = plan("--request-rate 6 --day sine:0.8 -tp 1 --no-disaggregate --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  const JsonView day = JsonView(document, "plan").at("day");
  EXPECT_NEAR(day.at("mean_requests_per_s").number(), 6, 0.05);
  EXPECT_NEAR(document.find("rate")->number(), day.at("peak_requests_per_s").number(), 1e-6);
  const JsonView first = day.at("layouts").items().front();
  EXPECT_GT(first.at("fixed").at("usd_per_day").number(), 0);
  EXPECT_GT(first.at("fixed").at("share_within_limits").number(), 0.9);
  EXPECT_LE(first.at("autoscaled").at("usd_per_day").number(), first.at("fixed").at("usd_per_day").number());
  EXPECT_EQ(plan("--day sine").status, 2) << "no rate";
  EXPECT_EQ(plan("--request-rate 6 --day sine:2").status, 2);
  EXPECT_EQ(plan("--request-rate 6 --autoscaler planner").status, 2) << "no day";
  const std::string file = write("day.csv", "hour,requests_per_s\n0,1\n9,4\n18,2\n");
  EXPECT_EQ(plan("--quick --day " + file).status, 2) << "--most-simulated is not for --quick";
  EXPECT_EQ(plan("--request-rate 6 --day " + file).status, 2) << "the file has the rates";
}

TEST_F(PlanServeCommand, a_pessimist_gets_the_low_end_of_the_interval) {
  const auto capacity = [](const std::string& flags) {
    const Outcome run = plan("-tp 2 --no-disaggregate --json " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json document = parse_json(run.out, "plan");
    const JsonView view = JsonView(document, "plan").at("winner").at("capacity_requests_per_s");
    return std::pair(view.at("low").number(), view.at("value").number());
  };
  const auto [usual_low, usual] = capacity("");
  const auto [slow_low, slow] = capacity("--pessimistic");
  EXPECT_LE(slow_low, slow);
  EXPECT_GE(slow, usual_low * 0.95);
  EXPECT_LT(slow, usual * 0.95);
}

TEST_F(PlanServeCommand, several_models_share_the_devices) {
  const Outcome run = plan("--request-rate 2 --also Qwen2.5-7B@2:256/32 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  const JsonView view(document, "plan");
  EXPECT_TRUE(view.at("fits").boolean());
  const std::vector<JsonView> models = view.at("models").items();
  ASSERT_EQ(models.size(), 2U);
  EXPECT_THAT(models[0].at("commands").items()[0].at("line").string(), HasSubstr("CUDA_VISIBLE_DEVICES=0 "));
  EXPECT_THAT(models[1].at("commands").items()[0].at("line").string(), HasSubstr("CUDA_VISIBLE_DEVICES=1 "));
  const Outcome large = plan("--request-rate 2 --also Llama-3.1-70B@1000");
  EXPECT_THAT(in_one_line(large.out), HasSubstr("cannot be served together"));
  EXPECT_EQ(plan("--also Qwen2.5-7B@2").status, 2);
  EXPECT_EQ(plan("--request-rate 2 --also Qwen2.5-7B").status, 2);
  EXPECT_EQ(plan("--request-rate 2 --also Qwen2.5-7B@2:256").status, 2);
}

TEST_F(PlanServeCommand, says_what_is_out_of_reach) {
  const Outcome fast = run_foretoken(
      "plan serve --model Llama-3.1-8B --hardware l4:1 --slo ttft:1,tpot:50 --engines vllm --random-output-len 64 "
      "--num-prompts 300");
  ASSERT_EQ(fast.status, 3) << fast.err;
  EXPECT_THAT(in_one_line(fast.out), HasSubstr("TTFT p99 < 1 ms is out of reach"));
  const Outcome large = run_foretoken(
      "plan serve --model Llama-3.1-70B --hardware l4:1 --slo ttft:500,tpot:50 --engines vllm --random-output-len 64 "
      "--num-prompts 300");
  ASSERT_EQ(large.status, 3) << large.err;
  EXPECT_THAT(in_one_line(large.out), HasSubstr("No engine has room for the weights (141 GB"));
}

TEST_F(PlanServeCommand, every_device_and_engine_has_a_row_with_its_figures_or_a_reason) {
  const Outcome run = run_foretoken(
      "plan serve --model Llama-3.1-8B --hardware h100_sxm:1,l4:1,mi300x:1 --price mi300x=2 --slo ttft:500,tpot:50 "
      "--engines vllm,trtllm --quantizations config --kv-cache-dtype auto --max-num-seqs 16 --max-num-batched-tokens 0 "
      "--request-rate 2 --random-input-len 512 --random-output-len 64 --num-prompts 500 --most-simulated 6 "
      "--finalists 1 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  const std::vector<JsonView> rows = JsonView(document, "plan").at("by_device_and_engine").items();
  ASSERT_EQ(rows.size(), 6U);
  for (const JsonView& row : rows) {
    const bool has_figures = row.find("answer").has_value();
    const bool is_served = row.at("serves").boolean();
    EXPECT_NE(is_served, row.find("reason").has_value()) << row.at("device").string() << row.at("engine").string();
    if (!is_served) continue;
    ASSERT_TRUE(has_figures);
    EXPECT_GT(row.at("headroom").number(), 0);
    const JsonView usd = row.at("usd_per_million_output_tokens");
    EXPECT_LE(usd.at("low").number(), usd.at("value").number());
    EXPECT_GE(usd.at("high").number(), usd.at("value").number());
    EXPECT_FALSE(row.at("rests_on").string().empty());
  }
}

// No rental price is known for an H20.
TEST_F(PlanServeCommand, a_device_without_a_price_is_ranked_last_and_never_stops_the_plan) {
  const auto asked = [&](const std::string& flags) {
    const Outcome run = run_foretoken(
        "plan serve --quick --model Qwen3-0.6B --slo ttft:5000,tpot:500 --engines vllm --quantizations config "
        "--random-input-len 64 --random-output-len 32 --num-prompts 300 --json " +
        flags);
    EXPECT_EQ(run.status, 0) << flags << run.err;
    return parse_json(run.out, "plan");
  };
  const auto notes_of = [](const Json& document) {
    std::string notes;
    for (const JsonView& note : JsonView(document, "plan").at("notes").items()) notes += note.string();
    return notes;
  };
  const auto winner_of = [](const Json& document) {
    return JsonView(document, "plan").at("winner").at("device").string();
  };
  const Json both = asked("--hardware h20:1,h100_sxm:1 --request-rate 1");
  EXPECT_EQ(winner_of(both), "h100_sxm");
  EXPECT_THAT(notes_of(both), HasSubstr("No rental price is known for h20, so its layouts are ranked after"));
  const std::vector<JsonView> rows = JsonView(both, "plan").at("by_device_and_engine").items();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].at("serves").boolean());
  EXPECT_EQ(rows[0].at("place").number(), 2);
  EXPECT_FALSE(rows[0].find("usd_per_million_output_tokens").has_value());
  const Json priced = asked("--hardware h20:1,h100_sxm:1 --price h20=0.3 --request-rate 1");
  EXPECT_EQ(winner_of(priced), "h20");
  EXPECT_THAT(notes_of(priced), testing::Not(HasSubstr("rental price")));
  EXPECT_THAT(notes_of(asked("--hardware h20:1 --budget-usd-hour 1")),
              HasSubstr("the budget does not limit its number"));
  EXPECT_EQ(winner_of(asked("--hardware h20:4,h100_sxm:1 --budget-usd-hour 5 --objective capacity")), "h100_sxm");
}

TEST_F(PlanServeCommand, a_device_beyond_the_budget_has_a_row_and_never_stops_the_plan) {
  const Outcome run = run_foretoken(
      "plan serve --quick --model Llama-3.1-8B --hardware b200_sxm:1,l40s:1 --budget-usd-hour 2 --traffic chat "
      "--engines vllm --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "plan");
  const std::vector<JsonView> rows = JsonView(document, "plan").at("by_device_and_engine").items();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(JsonView(document, "plan").at("winner").at("device").string(), "l40s");
  EXPECT_THAT(rows[0].at("reason").string(), HasSubstr("costs more than the budget"));
}

TEST_F(PlanServeCommand, takes_questions_as_people_write_them) {
  const std::string few =
      " --engines vllm --quantizations config --kv-cache-dtype auto --max-num-seqs 16 --max-num-batched-tokens 0 "
      "--no-disaggregate --num-prompts 500 --most-simulated 2 --finalists 1 --json";
  const auto asked = [&](const std::string& flags) {
    const Outcome run = run_foretoken("plan serve --model Llama-3.1-8B-Instruct " + flags + few);
    EXPECT_EQ(run.status, 0) << flags << run.err;
    return parse_json(run.out, "plan");
  };
  const Json chat = asked("--hardware 1xH100 --traffic chat --users 20 --price '$1.9/h' --budget '$1500/month'");
  const JsonView plan(chat, "plan");
  EXPECT_EQ(plan.at("winner").at("usd_per_hour").number(), 1.9);
  EXPECT_THAT(plan.at("slos").items()[0].string(), HasSubstr("ttft<450ms"));
  EXPECT_THAT(plan.at("commands").items()[0].at("line").string(),
              HasSubstr("vllm serve meta-llama/Llama-3.1-8B-Instruct "));
  std::string notes;
  for (const JsonView& note : plan.at("notes").items()) notes += note.string();
  EXPECT_THAT(notes, HasSubstr("Azure LLM inference trace 2023"));
  EXPECT_THAT(notes, HasSubstr("MLPerf"));
  EXPECT_THAT(notes, HasSubstr("20 users are counted as"));
  const Json gpus = asked("--hardware h100:1 --gpu-price 'h100=$1.9/h' --slo ttft:500,tpot:50 --request-rate 1");
  EXPECT_EQ(JsonView(gpus, "plan").at("winner").at("usd_per_hour").number(), 1.9);
}

TEST_F(PlanServeCommand, a_device_without_a_number_is_a_node_and_other_formats_than_the_checkpoints_are_noted) {
  const std::string quick = "plan serve --quick --model Llama-3.1-8B --traffic chat --engines vllm --hardware H100";
  const Outcome node = run_foretoken(quick);
  EXPECT_EQ(node.status, 0) << node.err;
  EXPECT_THAT(node.out, HasSubstr("on 8 x NVIDIA H100"));
  EXPECT_THAT(node.out, HasSubstr("--hardware H100 has no number: up to 8 x H100 (one node)"));
  EXPECT_THAT(node.out, HasSubstr("the quality of answers may change"));
  EXPECT_THAT(node.out, HasSubstr("--quantizations config"));
  const Outcome own = run_foretoken(quick + ":8 --quantizations config --kv-cache-dtype auto");
  EXPECT_THAT(own.out, Not(HasSubstr("has no number")));
  EXPECT_THAT(own.out, Not(HasSubstr("quality of answers")));
}

TEST_F(PlanServeCommand, finds_the_most_requests_in_flight) {
  const Outcome run = plan("--find-max-concurrency --json --no-disaggregate");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "plan");
  const JsonView answer(json, "plan");
  EXPECT_GT(answer.at("in_flight").integer(), 1);
  std::string notes;
  for (const JsonView& note : answer.at("notes").items()) notes += note.string();
  EXPECT_THAT(notes, HasSubstr("requests in flight keep the limits"));
}

TEST_F(PlanServeCommand, users_ask_as_often_as_the_service_answers) {
  const Outcome run = run_foretoken(
      "plan serve --quick --json --model Llama-3.1-8B --traffic chat --slo ttft:2000,tpot:100 --engines vllm "
      "--hardware 1xH100 --users 5");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "plan");
  const JsonView shown = JsonView(json, "plan").at("winner").at("run");
  const double rate = shown.at("rate").number();
  const double output_tokens = shown.at("output_tokens_per_s").number() / rate;
  const double answer_s = output_tokens / shown.at("tokens_per_s_per_user").number();
  EXPECT_GE(rate * (10 + answer_s), 0.97 * 5) << "so many wait for an answer or pause for 10 s";
}

TEST_F(PlanServeCommand, users_who_wait_longer_than_assumed_ask_for_less) {
  // At half the limits, these users would ask for more than any layout sustains.
  const Outcome run = run_foretoken(
      "plan serve --quick --json --model Llama-3.1-8B --traffic agent --engines vllm --hardware 1xH100 --users 85");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "plan");
  const JsonView winner = JsonView(json, "plan").at("winner");
  const double rate = winner.at("run").at("rate").number();
  EXPECT_LE(rate, winner.at("capacity_requests_per_s").at("value").number());
}

TEST_F(PlanServeCommand, where_nothing_runs_the_reasons_are_not_called_notes_on_rows) {
  const Outcome run = run_foretoken("plan serve --quick --model Llama-3.1-8B --hardware 1xL4 --slo ttft:1");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Why no device and engine serves this:"));
  EXPECT_THAT(run.out, Not(HasSubstr("these rows")));
}

TEST_F(PlanServeCommand, wrong_flags_are_named) {
  const auto refused = [](const std::string& flags) {
    const Outcome run = run_foretoken("plan serve --model Llama-3.1-8B " + flags);
    EXPECT_EQ(run.status, 2) << flags;
    return run.err;
  };
  EXPECT_THAT(refused("--slo ttft:500"), HasSubstr("--hardware"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo tfft:500"), HasSubstr("ttft"));
  EXPECT_THAT(refused("--hardware h10_sxm --slo ttft:500"), AllOf(HasSubstr("H100:8"), HasSubstr("h100_sxm")));
  EXPECT_THAT(refused("--hardware 8xh10_sxm --slo ttft:500"), HasSubstr("`foretoken devices`"));
  EXPECT_THAT(refused("--hardware h100_sxm:2,h100_sxm:4 --slo ttft:500"), HasSubstr("each device once"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --price h100_sxm --slo ttft:500"), HasSubstr("DEVICE=USD"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo ttft:500 --engines vlm"), HasSubstr("vllm"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo ttft:500 --quantizations fp9"), HasSubstr("fp8"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --traffic chats"), HasSubstr("chat"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --traffic chat --dataset-name random"), HasSubstr("--dataset-name"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --users 5 --request-rate 2"), HasSubstr("--request-rate"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --slo ttft:500 --budget 5/week"), HasSubstr("month"));
  const std::string sessions = "--hardware h100_sxm:2 --slo ttft:500 --dataset-name sessions ";
  EXPECT_THAT(refused(sessions + "--quick"), HasSubstr("a search without --quick"));
  EXPECT_THAT(refused(sessions + "--request-rate 2 --day sine:0.5"), HasSubstr("at the peak of the day"));
  EXPECT_THAT(refused(sessions + "--users 5"), HasSubstr("conversations that begin per second"));
  EXPECT_THAT(refused(sessions + "--max-concurrency 5"), HasSubstr("conversations at a --request-rate"));
  const std::string closed = "--hardware h100_sxm:2 --slo ttft:500 --max-concurrency 5 ";
  EXPECT_THAT(refused(closed + "--request-rate 2"), HasSubstr("either requests per second or requests in flight"));
  EXPECT_THAT(refused(closed + "--quick"), HasSubstr("a search without --quick"));
  EXPECT_THAT(refused(closed + "--goal-seek"), HasSubstr("the rate that they sustain"));
  const std::string day = "--hardware h100_sxm:2 --request-rate 2 ";
  EXPECT_THAT(refused(day + "--autoscaler planner"), HasSubstr("--autoscaler: needs --day"));
  EXPECT_THAT(refused(day + "--day cosine:0.5"), HasSubstr("a CSV file or sine:SWING"));
  EXPECT_THAT(refused(day + "--day sine --min-replicas 100"), HasSubstr("at most 2"));
  EXPECT_THAT(refused("--hardware h100_sxm:2 --quick --enable-lora --num-adapters 50"),
              HasSubstr("waiting for adapter slots"));
}

TEST_F(PlanServeCommand, closed_forms_claim_no_simulation_and_rates_have_few_digits) {
  const Outcome run = run_foretoken(
      "plan serve --quick --model Llama-3.1-8B --hardware h100_sxm:8 --traffic chat --engines vllm -tp 1 "
      "--no-disaggregate --users 500 --day sine:0.5");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, testing::Not(HasSubstr("simulations;")));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("No simulated")));
  EXPECT_THAT(run.out, HasSubstr("Layouts are chosen for the peak of the day, 51.9 requests/s."));
  EXPECT_THAT(run.out, HasSubstr("and arrive at 51.9 requests/s"));
  const Outcome still = run_foretoken(
      "plan serve --quick --model Llama-3.1-8B --hardware h100_sxm:1 --traffic chat --engines vllm "
      "--request-rate 2 --day sine:0.5");
  ASSERT_EQ(still.status, 0) << still.err;
  EXPECT_THAT(still.out, HasSubstr("Autoscaling changes nothing"));
  EXPECT_THAT(still.out, HasSubstr("1 replica all day"));
}

// Capacities by simulation, with their intervals: 4.87 (2.7 to 7.6), 21.1 (6.8 to 33.3), 9.59 (5.2 to 13.8), 50.0.
TEST_F(PlanServeCommand, a_quick_answer_counts_the_way_to_the_engine) {
  const std::string quick =
      "plan serve --quick --model Llama-3.1-8B --hardware h100_sxm:8 --engines vllm --slo tpot:50,ttft:";
  EXPECT_THAT(run_foretoken(quick + "25").out, HasSubstr("sustains"));
  // Steps alone take 8 ms of it.
  EXPECT_THAT(run_foretoken(quick + "12").out, testing::Not(HasSubstr("sustains")));
}

TEST_F(PlanServeCommand, intervals_by_closed_form_hold_what_simulations_find_with_long_prompts_and_prefixes) {
  for (const auto& [traffic, simulated] :
       {std::pair("rag", 4.87), std::pair("code", 21.1), std::pair("agent", 9.59), std::pair("chat", 50.0)}) {
    const Outcome run = run_foretoken(
        std::string("plan serve --quick --model Llama-3.1-8B --hardware h100_sxm:2 --engines vllm --no-disaggregate "
                    "--json --traffic ") +
        traffic);
    ASSERT_EQ(run.status, 0) << run.err;
    const Json document = parse_json(run.out, "plan");
    const JsonView capacity = JsonView(document, "plan").at("winner").at("capacity_requests_per_s");
    EXPECT_LT(capacity.at("low").number(), simulated) << traffic;
    EXPECT_GT(capacity.at("high").number(), simulated) << traffic;
  }
}

TEST_F(PlanServeCommand, a_budget_that_pays_for_fewer_devices_is_named_as_the_reason) {
  const std::string question =
      "plan serve --model Llama-3.3-70B-Instruct --hardware 8xH100 --traffic chat --price '$4.5/h' --quick --engines "
      "vllm ";
  const std::string text = in_one_line(run_foretoken(question + "--budget '$5/h'").out);
  EXPECT_THAT(text, HasSubstr("pays for 1 of 8 x h100_sxm")) << text;
  EXPECT_THAT(text, HasSubstr("1 x 80 GB of memory; the budget pays for 1 of 8 GPUs")) << text;
  EXPECT_THAT(in_one_line(run_foretoken(question).out), testing::Not(HasSubstr("budget pays")));
}

TEST_F(PlanServeCommand, a_limit_may_hold_for_every_request) {
  const char* question =
      "plan serve --model Llama-3.1-8B --hardware 1xH100 --random-input-len 256 --random-output-len 16 --engines vllm "
      "-tp 1 --quantizations config --most-simulated 2 --finalists 1 --request-rate 3 ";
  for (const char* limit : {"--slo 'ttft<2000ms@p100'", "--slo 'ttft<2000ms,tpot<100ms' --attainment 100"}) {
    const Outcome plan = run_foretoken(std::string(question) + limit);
    EXPECT_EQ(plan.status, 0) << limit << plan.err;
    EXPECT_NE(plan.out.find("sustains"), std::string::npos) << limit;
  }
}

}  // namespace foretoken::plan_serve_test
