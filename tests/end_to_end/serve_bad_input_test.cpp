// Odd and broken load: a clear error, or a request that counts as failed while the rest of the run goes on.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "run.h"

namespace foretoken::serve_bad_input_test {

namespace fs = std::filesystem;

class ServeBadInput : public testing::Test {
 protected:
  ServeBadInput() : folder_(fs::temp_directory_path() / ("foretoken_bad_load_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ServeBadInput() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string trace(const std::string& name, const std::string& rows) const {
    write_file(path(name), "arrival_s,input_tokens,output_tokens\n" + rows);
    return path(name);
  }

  static Outcome serve(const std::string& flags) {
    return run_foretoken("serve --model Llama-3.1-8B --device h100_sxm --no-intervals " + flags);
  }
  static Json answer(const std::string& flags) {
    const Outcome run = serve(flags + " --json");
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer");
  }
  static void expect_refused(const std::string& flags, const std::string& mentions) {
    const Outcome run = serve(flags);
    EXPECT_EQ(run.status, 2) << flags << "\n" << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(in_one_line(run.err).find(mentions), std::string::npos) << "should mention: " << mentions << "\n"
                                                                      << run.err;
  }

  fs::path folder_;
};

int64_t failures(const Json& answer, const std::string& why) {
  return answer.find("failures")->find(why)->integer();
}

TEST_F(ServeBadInput, requests_that_can_never_run_fail_each_for_its_reason_and_the_rest_is_served) {
  const std::string odd =
      trace("odd.csv", "0,100,10\n0.1,100,0\n0.2,0,5\n0.3,9000,5\n0.4,7000,900\n0.5,200,10\n0.6,8191,900\n");
  // 500 blocks of 16 tokens hold less than a sequence of 8192.
  const Json json = answer("--trace " + odd + " --max-model-len 7980 --num-gpu-blocks-override 500 --out-requests " +
                           path("requests.csv"));
  EXPECT_EQ(json.find("completed")->integer(), 3) << "the one of 7000 and 900 is cut to the model's length";
  EXPECT_EQ(json.find("failed")->integer(), 4);
  EXPECT_EQ(failures(json, "no output tokens"), 1);
  EXPECT_EQ(failures(json, "no input tokens"), 1);
  EXPECT_EQ(failures(json, "prompt of --max-model-len or more"), 2);
  EXPECT_NE(read_file(path("requests.csv"), 1'000'000).find("rejected,0,100,0"), std::string::npos);
}

TEST_F(ServeBadInput, a_sequence_that_can_never_fit_in_the_cache_fails_alone) {
  const std::string large = trace("large.csv", "0,100,10\n0.1,7000,1000\n0.2,200,10\n");
  // Of 500 blocks a tenth must stay free: a sequence of --max-model-len fits in the memory but is never admitted.
  const Json json = answer("--trace " + large + " --max-model-len 7980 --num-gpu-blocks-override 500 --watermark 0.1");
  EXPECT_EQ(json.find("completed")->integer(), 2);
  EXPECT_EQ(failures(json, "more tokens than the KV cache holds"), 1);
}

TEST_F(ServeBadInput, a_trace_without_requests_is_refused) {
  expect_refused("--trace " + trace("empty.csv", ""), "at least one request");
  write_file(path("nothing.csv"), "");
  expect_refused("--trace " + path("nothing.csv"), "an empty file");
  write_file(path("nothing.jsonl"), "");
  expect_refused("--trace " + path("nothing.jsonl"), "an empty file");
  expect_refused("--trace " + folder_.string(), "this is a directory");
  expect_refused("--dataset-path " + path("empty.csv"), "at least one row with tokens");
}

TEST_F(ServeBadInput, a_broken_line_three_million_rows_in_is_named_and_the_trace_is_never_held) {
  const std::string file = path("long.csv");
  {
    std::ofstream out(file);
    out << "arrival_s,input_tokens,output_tokens\n";
    for (int64_t i = 0; i < 3'000'000; ++i) out << i / 1000 << ",1,0\n";  // no output: nothing to simulate
    out << "3000,oops,1\n";
  }
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  expect_refused("--trace " + file, "long.csv:3000002");
  getrusage(RUSAGE_SELF, &after);
#if !defined(__SANITIZE_ADDRESS__)  // which keeps freed memory
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 50'000) << "kB; requests alone would be 250 MB";
#endif
}

TEST_F(ServeBadInput, a_compressed_trace_cut_short_is_refused) {
  std::string rows;
  for (int i = 0; i < 5000; ++i) rows += std::to_string(i) + "," + std::to_string(1 + i * 7919 % 1000) + ",0\n";
  rows += "5000,1,1\n";
  write_file(path("whole.csv.gz"), "arrival_s,input_tokens,output_tokens\n" + rows);
  const auto size = fs::file_size(path("whole.csv.gz"));
  EXPECT_EQ(answer("--trace " + path("whole.csv.gz")).find("failed")->integer(), 5000);
  fs::resize_file(path("whole.csv.gz"), size / 2);
  expect_refused("--trace " + path("whole.csv.gz"), "whole.csv.gz");
}

TEST_F(ServeBadInput, arrivals_that_go_back_or_lie_beyond_simulated_time_are_refused_with_their_line) {
  expect_refused("--trace " + trace("back.csv", "2,1,1\n1,1,1\n"), "back.csv:3");
  expect_refused("--trace " + trace("late.csv", "2,1,1\n1e15,1,1\n"), "late.csv:3");
  expect_refused("--trace " + trace("late.csv", "2,1,1\n8200000,1,1\n"), "late.csv:3");
  expect_refused("--trace " + trace("minus.csv", "-1,1,1\n"), "minus.csv:2");
  expect_refused("--trace " + trace("nan.csv", "nan,1,1\n"), "nan.csv:2");
  expect_refused("--trace " + trace("half.csv", "1,1.5,1\n"), "half.csv:2");
}

TEST_F(ServeBadInput, a_load_that_makes_no_sense_is_refused) {
  expect_refused("--burstiness 0 --request-rate 1", "--burstiness");
  expect_refused("--request-rate nan", "--request-rate");
  expect_refused("--request-rate -1", "--request-rate");
  expect_refused("--ramp-up-strategy linear", "--ramp-up-start-rps");
  expect_refused("--priority-shares 0,0", "--priority-shares");
  expect_refused("--priority-shares 0.5,often", "--priority-shares");
  expect_refused("--trace " + trace("one.csv", "0,1,1\n") + " --request-rate 3", "--request-rate");
}

TEST_F(ServeBadInput, steps_too_small_for_whole_prompts_are_refused_before_the_run) {
  expect_refused("--num-prompts 10 --no-enable-chunked-prefill --max-num-batched-tokens 2048 --max-model-len 4096",
                 "--max-num-batched-tokens 4096");
}

TEST_F(ServeBadInput, flags_that_the_load_does_not_use_are_refused) {
  const std::string one = "--trace " + trace("one.csv", "0,1,1\n");
  expect_refused(one + " --random-input-len 5", "--random-input-len");
  expect_refused(one + " --burstiness 2", "--burstiness");
  expect_refused(one + " --turns 2", "--turns");
  expect_refused("--time-scale 2", "--time-scale");
  expect_refused("--turns 2", "--dataset-name random");
  expect_refused("--daily-swing 0.2 --request-rate 3", "--daily-swing");
  expect_refused("--ramp-up-start-rps 2 --request-rate 3", "--ramp-up-start-rps");
  expect_refused("--lognormal-sigma 2", "--lognormal-sigma");
  expect_refused("--dataset-path " + path("one.csv") + " --random-output-len 3", "--random-output-len");
}

TEST_F(ServeBadInput, flags_that_nothing_would_read_are_refused) {
  expect_refused("--enable-expert-parallel", "--enable-expert-parallel");
  expect_refused("--all2all-backend deepep", "routed experts");
  expect_refused("--kv-transfer-bandwidth 50", "needs --prefill-pool");
  expect_refused("--decode-router random", "needs --prefill-pool");
  expect_refused("--prefix-repetition-num-prefixes 5", "needs --random-prefix-len");
  expect_refused("--dataset-name prefix_repetition --num-prompts 5 --prefix-repetition-num-prefixes 6", "5 prompts");
  expect_refused("--block-size 7", "a multiple of 16");
  expect_refused("--engine trtllm --block-size 48", "a power of two");
  EXPECT_EQ(serve("--num-prompts 3 --engine sglang --block-size 7").status, 0);
  EXPECT_EQ(serve("--num-prompts 3 --block-size 32 --random-prefix-len 64 --prefix-repetition-num-prefixes 2").status,
            0);
}

TEST_F(ServeBadInput, outputs_that_are_cut_to_the_length_of_the_model_are_noted) {
  const auto notes = [](const std::string& flags) {
    const Json json = answer("--num-prompts 4 --random-input-len 100 --max-model-len 2048 --request-rate 1 " + flags);
    return json.find("notes") == nullptr ? std::string() : json.find("notes")->dump(0);
  };
  EXPECT_NE(notes("--random-output-len 100000").find("The outputs of 4 of 4 requests are cut"), std::string::npos);
  EXPECT_EQ(notes("--random-output-len 100").find("cut"), std::string::npos);
}

TEST_F(ServeBadInput, an_offline_run_says_that_it_has_no_server_in_front) {
  const auto says = [](const std::string& flags) {
    return serve("--num-prompts 4 " + flags).out.find("HTTP server") != std::string::npos;
  };
  EXPECT_TRUE(says(""));
  EXPECT_FALSE(says("--max-concurrency 4"));
  EXPECT_FALSE(says("--request-rate 10"));
}

TEST_F(ServeBadInput, flags_that_the_scheduler_does_not_read_are_refused) {
  expect_refused("--scheduler orca --no-enable-prefix-caching", "--enable-prefix-caching");
  expect_refused("--scheduler vllm_v0 --async-scheduling", "--scheduler vllm_v0");
  expect_refused("--engine sglang --scheduling-policy priority", "--scheduling-policy");
  expect_refused("--batch-wait-timeout-iters 3", "--batch-wait-timeout-iters");
  expect_refused("--scheduler trtllm --long-prefill-token-threshold 3", "--long-prefill-token-threshold");
  expect_refused("--num-prompts 3 --replica scheduler=static,long-prefill-token-threshold=3", "--replica");
  EXPECT_EQ(serve("--num-prompts 3 --batch-wait-timeout-iters 3 --replica count=1 --replica scheduler=trtllm").status,
            0)
      << "one of the replicas reads it";
  expect_refused("--watermark 1", "--watermark");
}

TEST_F(ServeBadInput, a_setting_of_a_replica_is_named_as_it_was_typed) {
  expect_refused("--replica count=0", "--replica: count");
  expect_refused("--replica trace=x", "a flag of one replica");
}

TEST_F(ServeBadInput, files_that_are_not_there_are_refused_with_their_flag) {
  expect_refused("--request-rate 1 --num-prompts 2 --vidur-tables " + path("nothing"), "--vidur-tables: no per_token");
  const Outcome experts = run_foretoken(
      "serve --model Mixtral-8x7B --device h100_sxm -tp 2 --expert-popularity foo --request-rate 1 --num-prompts 2");
  EXPECT_EQ(experts.status, 2);
  EXPECT_NE(experts.err.find("--expert-popularity: foo"), std::string::npos) << experts.err;
}

TEST_F(ServeBadInput, load_that_would_never_come_to_an_end_is_refused_at_once) {
  expect_refused("--num-prompts 2000000000 --request-rate 5", "--num-prompts");
  expect_refused("--random-prefix-len 1000000000", "--random-prefix-len");
  expect_refused("--request-rate 1e-7 --num-prompts 10", "--request-rate");
}

TEST_F(ServeBadInput, an_unknown_name_comes_with_the_nearest) {
  expect_refused("--router rund_robin", "did you mean round_robin");
  expect_refused("--scheduler sarati", "did you mean sarathi");
  expect_refused("--replica devce=l40s", "did you mean device");
  expect_refused("--replica device=l40ss", "l40s");
  expect_refused("--dataset-name sesions", "did you mean sessions");
}

TEST_F(ServeBadInput, flags_of_results_that_lead_nowhere_are_refused) {
  expect_refused("--num-prompts 3 --explain-request 3", "--explain-request");
  expect_refused("--num-prompts 3 --explain-request=-1", "--explain-request");
  expect_refused("--num-prompts 3 --save-detailed", "--save-result");
  expect_refused("--num-prompts 3 --out-steps " + path("same.csv") + " --out-series " + path("./same.csv"),
                 "--out-series");
  expect_refused("--num-prompts 3 --metadata nothing", "--metadata");
  expect_refused("--num-prompts 3 --out-series " + path("no/such.csv"), "--out-series");
  expect_refused("--num-prompts 3 --out-trace " + path("no/such.json"), "--out-trace");
  expect_refused("--num-prompts 3 --replicas 2 --replica count=2", "--replicas");
  expect_refused("--num-prompts 3 --replica model=Llama-3.1-70B", "the same model");
  expect_refused("--num-gpu-blocks-override 10", "would not start");
}

TEST_F(ServeBadInput, tables_of_step_times_are_looked_for_before_the_run) {
  expect_refused("--op-tables " + path("none"), "dense.csv");
  expect_refused("--vidur-tables " + folder_.string(), "per_token_ops_ms.csv");
  write_file(path("dense.csv"), "layer,tokens,time_us\nqkv_proj,1,slow\n");
  expect_refused("--op-tables " + folder_.string(), "dense.csv:2");
}

TEST_F(ServeBadInput, tiers_that_make_no_sense_are_refused) {
  const std::string load = "--request-rate 1 --num-prompts 2 ";
  expect_refused(load + "--kv-swap", "--kv-tier");
  expect_refused(load + "--kv-tier kind=hots,size=1GiB", "host");
  expect_refused(load + "--kv-tier kind=host", "size");
  expect_refused(load + "--kv-tier size=1GiB", "kind");
  expect_refused(load + "--kv-tier kind=host,size=large", "200GiB");
  expect_refused(load + "--kv-tier kind=host,size=1GiB,bandwidth=0", "1MB/s");
  expect_refused(load + "--kv-tier kind=host,size=1GiB,bandwith=1GB/s", "bandwidth");
  expect_refused(load + "--kv-tier kind=host,size=1GiB --no-enable-prefix-caching", "prefix caching");
  expect_refused(load + "--kv-tier kind=host,size=1GiB --scheduler sglang --kv-load apart", "by_layer");
  expect_refused(load + "--kv-tier kind=host,size=1GiB --replica count=1 --replica device=l40s,count=1",
                 "a single kind");
}

TEST_F(ServeBadInput, feed_forward_pools_that_make_no_sense_are_refused) {
  const std::string load = "--request-rate 1 --num-prompts 2 ";
  expect_refused(load + "--ffn-pool device=h100_sxm", "count");
  expect_refused(load + "--ffn-pool count=0", "count");
  expect_refused(load + "--ffn-pool count=1,device=h100_smx", "h100_sxm");
  expect_refused(load + "--ffn-pool count=1,bandwidth=fast", "50GB/s");
  expect_refused(load + "--ffn-pool count=1 -pp 2", "-pp");
  const Outcome run = run_foretoken(
      "serve --model Llama-3.1-405B --device h100_sxm -tp 8 --max-model-len 8192 --request-rate 1 --num-prompts 2 "
      "--ffn-pool count=2");
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_NE(run.err.find("weights"), std::string::npos) << run.err;
}

TEST(ServeFailures, prompts_beyond_the_length_limit_name_it) {
  const Outcome run = run_foretoken(
      "serve --model Llama-3.1-8B --device h100_sxm --request-rate 4 --num-prompts 4 --random-input-len 2000 "
      "--max-model-len 1000 --no-intervals");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(in_one_line(run.out).find("A request may have 1000 tokens, prompt and output together (--max-model-len)"),
            std::string::npos)
      << run.out;
}

}  // namespace foretoken::serve_bad_input_test
