// An answer that says no says so first: in the first line for people, in `failure` for programs, in exit status 3.
#include <sstream>

#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::verdict_test {

// The text begins with the verdict and goes on with the answer; the document is one, with `failure`.
Json expect_no(const std::string& line, const std::string& verdict) {
  const Outcome text = run_foretoken(line);
  EXPECT_EQ(text.status, 3) << line << "\n" << text.err;
  EXPECT_EQ(text.err, "") << line;
  EXPECT_EQ(in_one_line(text.out).find(verdict), 0u) << line << "\n" << text.out.substr(0, 400);
  EXPECT_GT(text.out.size(), verdict.size() + 100) << "the answer itself is printed too";
  std::istringstream lines(text.out);
  for (std::string own; std::getline(lines, own);) EXPECT_LE(own.size(), 100u) << line << "\n" << own;

  const Outcome json = run_foretoken(line + " --json");
  EXPECT_EQ(json.status, 3) << line;
  EXPECT_EQ(json.err, "") << line;
  Json document = parse_json(json.out, line);
  EXPECT_EQ(JsonView(document, line).at("failure").string().find(verdict), 0u) << json.out.substr(0, 400);
  return document;
}

const std::string too_large =
    "train --model Llama-3.1-405B --cluster h100_ib_rail --devices 8 -tp 8 --global-batch-size 8 --seq-length 2048";

TEST(Verdict, training_that_does_not_fit_is_out_of_memory_first) {
  const Json document = expect_no(too_large, "Out of memory: meta-llama/Llama-3.1-405B does not fit on 8 x ");
  const JsonView view(document, "train");
  EXPECT_FALSE(view.at("fits").boolean());
  EXPECT_GT(view.at("seconds").at("value").number(), 0);
  EXPECT_NE(run_foretoken(too_large).out.find("With enough memory, a step of"), std::string::npos);
}

TEST(Verdict, training_that_fits_has_no_failure) {
  const Outcome run = run_foretoken(
      "train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 -tp 2 --sharding optimizer --global-batch-size 32 "
      "--json");
  EXPECT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "train");
  EXPECT_TRUE(JsonView(document, "train").at("fits").boolean());
  EXPECT_FALSE(JsonView(document, "train").has("failure"));
}

TEST(Verdict, a_step_that_does_not_fit_is_out_of_memory_first) {
  const Json document = expect_no("step --model Llama-3.1-405B --device h100_sxm",
                                  "Out of memory: this step of meta-llama/Llama-3.1-405B does not fit on 1 x ");
  EXPECT_FALSE(JsonView(document, "step").at("fits_in_memory").boolean());
  EXPECT_EQ(run_foretoken("step --model Llama-3.1-8B --device h100_sxm").status, 0);
}

TEST(Verdict, a_comparison_lists_no_parts_that_are_nothing_in_both) {
  const Outcome run = run_foretoken(
      "compare --first 'train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 -tp 8 --global-batch-size 8' "
      "--second '--global-batch-size 16' --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "compare");
  for (const JsonView& part : JsonView(document, "compare").at("parts").items()) {
    EXPECT_GT(part.at("first").number() + part.at("second").number(), 1e-6) << part.at("name").string();
  }
}

TEST(Verdict, a_comparison_says_which_side_does_not_fit) {
  const Json document = expect_no("compare --first '" + too_large + "' --second '--model Llama-3.1-8B'",
                                  "The first command fails: Out of memory: meta-llama/Llama-3.1-405B does not fit");
  const JsonView view(document, "compare");
  EXPECT_EQ(view.at("failures").at("first").string().find("Out of memory"), 0u);
  EXPECT_EQ(document.find("failures")->find("second")->kind(), Json::Kind::null);
  EXPECT_EQ(view.at("sentence").string().find("The first command fails: Out of memory"), 0u);
  EXPECT_EQ(view.at("outcomes").items().front().at("name").string(), "fits in memory");
}

TEST(Verdict, a_comparison_of_a_run_that_serves_nothing_has_no_latencies) {
  const Json document = expect_no(
      "compare --first 'serve --model Llama-3.1-8B --device h100_sxm --request-rate 4 --num-prompts 10' "
      "--second '--model Llama-3.1-70B'",
      "The second command fails: Out of memory: meta-llama/Llama-3.1-70B does not start on h100_sxm");
  EXPECT_TRUE(JsonView(document, "compare").at("headlines").items().empty());
}

TEST(Verdict, a_model_that_does_not_fit_serves_nothing) {
  const Json document = expect_no(
      "serve --model Llama-3.1-70B --device h100_sxm --num-prompts 10",
      "Out of memory: meta-llama/Llama-3.1-70B does not start on h100_sxm: the weights do not fit: they take 141 GB");
  const JsonView view(document, "serve");
  EXPECT_EQ(view.at("completed").integer(), 0);
  EXPECT_EQ(view.at("failed").integer(), 10);
  EXPECT_FALSE(view.at("serving_memory").at("starts").boolean());
}

TEST(Verdict, a_sequence_that_does_not_fit_beside_the_weights_is_not_blamed_on_them) {
  expect_no("serve --model Llama-3.1-8B --device rtx_4090 --num-prompts 10",
            "Out of memory: meta-llama/Llama-3.1-8B does not start on rtx_4090: the KV cache is ");
}

TEST(Verdict, engines_that_shorten_the_context_start_and_say_how_short) {
  const std::string sglang = "serve --model Llama-3.1-8B --device rtx_4090 --engine sglang --num-prompts 2 ";
  const Outcome run = run_foretoken(sglang + "--no-intervals");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(in_one_line(run.out).find("The KV cache has no room for a request of 131,072 tokens. sglang still starts"),
            std::string::npos)
      << run.out;
  const Json document = expect_no(sglang + "--random-input-len 60000", "No request was served: all 2 failed");
  EXPECT_NE(JsonView(document, "serve").at("failure").string().find("the KV cache holds no more"), std::string::npos);
  expect_no(
      "plan serve --model Llama-3.1-8B --hardware rtx_4090:1 --engines sglang --quantizations config "
      "--kv-cache-dtype bf16 --random-input-len 60000 --random-output-len 100 --slo ttft:60000 --quick",
      "The only layout does not serve meta-llama/Llama-3.1-8B with p99 TTFT below 60000 ms. No engine has room");
}

TEST(Verdict, a_run_in_which_every_request_fails_says_so_first) {
  const Json document = expect_no(
      "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 5 --random-input-len 3000 --max-model-len 2048",
      "No request was served: all 5 failed (5 with prompt of --max-model-len or more).");
  EXPECT_EQ(JsonView(document, "serve").at("failed").integer(), 5);
}

TEST(Verdict, a_run_in_which_some_requests_fail_is_an_answer) {
  const Outcome run = run_foretoken(
      "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 40 --random-input-len 2000 --random-range-ratio 0.5 "
      "--max-model-len 2048 --random-output-len 8 --json");
  EXPECT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "serve");
  EXPECT_GT(JsonView(document, "serve").at("failed").integer(), 0);
  EXPECT_FALSE(JsonView(document, "serve").has("failure"));
}

TEST(Verdict, a_serving_plan_without_a_layout_is_no_success) {
  const Json document = expect_no(
      "plan serve --model Llama-3.1-70B --hardware h100_sxm:1 --slo ttft:500,tpot:50 --engines vllm "
      "--quantizations config --max-num-seqs 0 --max-num-batched-tokens 0",
      "None of ");
  EXPECT_EQ(document.find("winner")->kind(), Json::Kind::null);
}

TEST(Verdict, a_training_plan_that_fits_nowhere_names_the_nearest) {
  const Json document =
      expect_no("plan train --model Llama-3.1-405B --cluster h100_ib_rail --devices 8 --global-batch-size 8",
                "Out of memory: none of ");
  const JsonView nearest = JsonView(document, "plan").at("nearest");
  EXPECT_GT(nearest.at("memory_bytes").number(), nearest.at("capacity_bytes").number());
  EXPECT_TRUE(JsonView(document, "plan").at("best").items().empty());
}

TEST(Verdict, a_design_search_within_impossible_limits_finds_nothing) {
  expect_no("plan accel --arch gemm_array_16x16 --gemm 128x3072x768 --evaluations 10 --most-area 0.0001",
            "No design around gemm_array_16x16 runs gemm within the limits");
}

TEST(Verdict, only_formats_of_the_device_are_suggested) {
  const Outcome turing = run_foretoken("serve --model Llama-3.1-8B --device t4 --num-prompts 1");
  EXPECT_EQ(turing.status, 3) << turing.err;
  EXPECT_EQ(turing.out.find("fp8"), std::string::npos) << turing.out;
  const Outcome hopper =
      run_foretoken("serve --model Qwen3-32B --device h100_sxm --max-model-len 40000 --num-prompts 1");
  EXPECT_EQ(hopper.status, 3) << hopper.err;
  EXPECT_NE(hopper.out.find("--quantization fp8"), std::string::npos) << hopper.out;
}

TEST(Verdict, help_and_manual_tell_the_exit_statuses) {
  for (const char* line : {"--help", "man"}) {
    const std::string text = in_one_line(run_foretoken(line).out);
    EXPECT_NE(text.find("3 the answer is that nothing fits or serves"), std::string::npos) << line;
  }
}

// Parts of a serving run are those of the step that an output token waits for: they add up to the mean TPOT.
TEST(Verdict, parts_of_serving_runs_add_up_to_the_time_of_an_output_token) {
  const std::string first = "serve --model Llama-3.1-8B --device h100_sxm --request-rate 8 --num-prompts 30";
  const Outcome run = run_foretoken("compare --first '" + first + "' --second '--device h200_sxm' --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "compare");
  const JsonView view(document, "compare");
  EXPECT_EQ(view.at("parts_of").string(), "mean TPOT");
  const Json own = parse_json(run_foretoken(first + " --json").out, "serve");
  double parts = 0;
  for (const JsonView& part : view.at("parts").items()) parts += part.at("first").number();
  EXPECT_NEAR(1e3 * parts, JsonView(own, "serve").at("mean_tpot_ms").number(), 1e-9);
  EXPECT_LT(view.at("parts_difference_seconds").number(), 0) << "a faster device";
}

TEST(Verdict, the_list_of_models_shows_each_name_whole_in_one_line) {
  const std::string list = run_foretoken("models").out;
  const Json document = parse_json(run_foretoken("models --json").out, "models");
  for (const JsonView& model : JsonView(document, "models").at("models").items()) {
    EXPECT_NE(list.find("\n" + model.at("name").string() + " "), std::string::npos) << model.at("name").string();
  }
}

TEST(Verdict, rows_of_a_serving_plan_say_in_full_what_to_run) {
  const Outcome run = run_foretoken(
      "plan serve --model Llama-3.1-8B --hardware h100_sxm:2 --slo ttft:500,tpot:50 --engines vllm --max-num-seqs 0 "
      "--max-num-batched-tokens 0 -pp 1 --random-output-len 64 --request-rate 5 --most-simulated 3 --finalists 1");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out.find("..."), std::string::npos) << run.out;
  EXPECT_NE(in_one_line(run.out).find("arrive at 5 requests/s"), std::string::npos) << run.out;
}

TEST(Verdict, a_serving_plan_without_limits_says_which_it_takes) {
  const Outcome run = run_foretoken("plan serve --model Llama-3.1-8B --hardware h100_sxm:2 --quick");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("No --slo was given"), std::string::npos) << run.out;
}

}  // namespace foretoken::verdict_test
