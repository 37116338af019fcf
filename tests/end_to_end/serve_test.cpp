// A whole simulated serving run from the command line.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "run.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class Serve : public testing::Test {
 protected:
  Serve() : folder_(fs::temp_directory_path() / ("foretoken_serve_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Serve() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Eight billion parameters on one H100.
  static Outcome serve(const std::string& flags) {
    return run_foretoken("serve --model Llama-3.1-8B --device h100_sxm --no-intervals " + flags);
  }
  static void expect_refused(const Outcome& run, const std::string& mentions) {
    EXPECT_EQ(run.status, 2) << run.err << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(mentions), std::string::npos) << "should mention: " << mentions << "\n" << run.err;
  }

  fs::path folder_;
};

TEST_F(Serve, every_file_of_a_run_agrees_with_its_table) {
  const Outcome run = serve("--num-prompts 40 --request-rate 10 --random-output-len 20 --save-result --result-dir " +
                            folder_.string() + " --result-filename result.json --out-requests " + path("requests.csv") +
                            " --out-steps " + path("steps.csv") + " --out-trace " + path("trace.json") + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer"), saved = read_json_file(path("result.json"));
  EXPECT_EQ(json.find("completed")->integer(), 40);
  EXPECT_EQ(saved.find("mean_ttft_ms")->number(), json.find("mean_ttft_ms")->number());
  CsvReader requests{fs::path(path("requests.csv"))};
  double ttft = 0;
  int64_t tokens = 0, rows = 0;
  while (requests.next()) {
    ttft += requests.number(requests.column("ttft_ms"));
    tokens += requests.integer(requests.column("output_tokens"));
    ++rows;
  }
  EXPECT_EQ(rows, 40);
  EXPECT_EQ(tokens, json.find("total_output_tokens")->integer());
  EXPECT_NEAR(ttft / 40, json.find("mean_ttft_ms")->number(), 1e-6);
  CsvReader steps{fs::path(path("steps.csv"))};
  int64_t prefilled = 0;
  while (steps.next()) {
    prefilled += steps.integer(steps.column("prefill_tokens")) * steps.integer(steps.column("repeats"));
  }
  EXPECT_EQ(prefilled, json.find("total_input_tokens")->integer()) << "each prompt token is computed once";
  EXPECT_GT(read_json_file(path("trace.json")).find("traceEvents")->items().size(), 120U);
}

TEST_F(Serve, a_trace_with_odd_requests_runs_to_its_end) {
  const std::string trace = path("trace.csv");
  write_file(trace,
             "arrival_s,input_tokens,output_tokens\n0,100,10\n0.5,100,0\n0.6,0,5\n0.7,9000000,5\n1,200,10\n1,300,1\n");
  const Outcome run = serve("--trace " + trace + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_EQ(json.find("completed")->integer(), 3);
  EXPECT_EQ(json.find("failed")->integer(), 3) << "without output, without input, longer than the model";
}

TEST_F(Serve, shared_prefixes_are_found_in_the_cache) {
  const auto hits = [](const std::string& flags) {
    const Outcome run = serve(
        "--num-prompts 30 --request-rate 5 --random-prefix-len 512 --random-input-len 512 "
        "--random-output-len 4 --json " +
        flags);
    return parse_json(run.out, "answer").find("prefix_cache_hit_share")->number();
  };
  EXPECT_NEAR(hits(""), 0.5 * 29 / 30, 0.02);
  EXPECT_EQ(hits("--no-enable-prefix-caching"), 0);
}

TEST_F(Serve, conversations_send_all_their_turns) {
  const Outcome run = serve(
      "--dataset-name sessions --num-prompts 5 --turns 3 --request-rate 1 --think-time 1 "
      "--random-input-len 64 --random-output-len 8 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(parse_json(run.out, "answer").find("completed")->integer(), 15);
}

TEST_F(Serve, two_replicas_serve_an_overload_faster) {
  const auto duration = [](const std::string& flags) {
    const Outcome run = serve("--num-prompts 300 --random-output-len 50 --json " + flags);
    return parse_json(run.out, "answer").find("duration")->number();
  };
  EXPECT_LT(duration("--replicas 2 --router least_outstanding"), 0.7 * duration(""));
}

TEST_F(Serve, the_breakdown_accounts_for_all_busy_time) {
  const Outcome run = serve("--num-prompts 30 --request-rate 5 --random-output-len 30 --breakdown --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  double steps = 0, operators = 0;
  for (const Json& kind : json.find("breakdown")->find("step_kinds")->items()) steps += kind.find("seconds")->number();
  for (const Json& one : json.find("breakdown")->find("operators")->items()) operators += one.find("seconds")->number();
  EXPECT_GT(steps, 0);
  EXPECT_NEAR(operators, steps, 0.02 * steps);
}

TEST_F(Serve, a_board_held_busy_takes_longer_for_prompts) {
  const auto mean_ttft = [](const std::string& flags) {
    const Outcome run = serve("--num-prompts 40 --random-input-len 4000 --random-output-len 5 --json " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer").find("mean_ttft_ms")->number();
  };
  EXPECT_GT(mean_ttft("--sustained"), 1.01 * mean_ttft(""));
  expect_refused(run_foretoken("serve --model Llama-3.1-8B --device tpu_v5e -tp 2 --num-prompts 5 --sustained"),
                 "power_limit_w");
}

TEST_F(Serve, wrong_load_is_refused) {
  expect_refused(serve("--burstiness 0 --request-rate 1"), "--burstiness");
  expect_refused(serve("--request-rate fast"), "--request-rate");
  expect_refused(serve("--request-rate 0"), "--request-rate");
  expect_refused(serve("--goodput ttft=5"), "--goodput");
  expect_refused(serve("--percentile-metrics ttfb"), "did you mean ttft");
  expect_refused(serve("--metric-percentiles 101"), "--metric-percentiles");
  expect_refused(serve("--scheduler vlm"), "vllm");
  expect_refused(serve("--trace " + path("none.csv")), "none.csv");
  expect_refused(serve("--out-requests " + path("no/such/folder.csv")), "--out-requests");
  const std::string back = path("back.csv");
  write_file(back, "arrival_s,input_tokens,output_tokens\n2,1,1\n1,1,1\n");
  expect_refused(serve("--trace " + back), "back.csv:3");
}

TEST_F(Serve, a_model_that_does_not_fit_is_refused_with_what_would_help) {
  expect_refused(run_foretoken("serve --model Llama-3.1-70B --device h100_sxm --num-prompts 1"), "would not start");
}

TEST_F(Serve, validation_lists_rows_it_cannot_express) {
  const std::string cases = path("cases.csv");
  write_file(cases,
             "case_id,tier,gpu,model,engine,weight_dtype,tp,mode,isl,osl,concurrency,ttft_ms,ttft_stat\n"
             "a,B,h100_sxm,Llama-3.1-8B,vllm,bf16,1,agg,128,16,4,20,mean\n"
             "b,B,h100_sxm,Llama-3.1-8B,vllm,bf16,1,disagg,128,16,4,20,mean\n");
  const Outcome run = run_foretoken("validate serving --data " + cases + " --json --out " + path("rows.csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_EQ(json.find("layer")->string(), "serving");
  EXPECT_EQ(json.find("groups")->items().at(0).find("name")->string(), "B/ttft_ms");
  EXPECT_EQ(json.find("skipped")->items().size(), 1U);
  CsvReader rows{fs::path(path("rows.csv"))};
  EXPECT_TRUE(rows.next());
  expect_refused(run_foretoken("validate serving"), "--run");
}

}  // namespace
}  // namespace foretoken
