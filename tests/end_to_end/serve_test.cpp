// A whole simulated serving run from the command line.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "run.h"

namespace foretoken::serve_test {

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

TEST_F(Serve, intervals_are_there_when_they_were_asked_for_and_only_then) {
  const auto intervals = [](const std::string& flags) {
    const Outcome run = run_foretoken("serve --model Llama-3.1-8B --device h100_sxm --json " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer").find("intervals") != nullptr;
  };
  EXPECT_TRUE(intervals("--num-prompts 3"));
  EXPECT_FALSE(intervals("--num-prompts 3 --no-intervals"));
  const std::string many = "--num-prompts 20001 --random-input-len 1 --random-output-len 1";
  EXPECT_FALSE(intervals(many));
  EXPECT_TRUE(intervals(many + " --intervals"));
}

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

TEST_F(Serve, a_trace_holds_the_kernels_of_chosen_steps) {
  const std::string load = "--request-rate 4 --num-prompts 20 ";
  const Outcome run = serve(load + "--trace-kernels-at 1,2.5 --out-trace " + path("trace.json"));
  ASSERT_EQ(run.status, 0) << run.err;
  const Json trace = parse_json(read_file(path("trace.json"), 1 << 26), "trace");
  std::map<int64_t, std::pair<double, double>> steps;  // begin and end of the kernels of each
  for (const Json& event : trace.find("traceEvents")->items()) {
    const Json* category = event.find("cat");
    if (category == nullptr || category->string() != "kernel") continue;
    const double begin = event.find("ts")->number();
    auto& [first, last] = steps.try_emplace(event.find("pid")->integer(), begin, begin).first->second;
    first = std::min(first, begin);
    last = std::max(last, begin + event.find("dur")->number());
  }
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_LE(steps.begin()->second.first, 1e6) << "the step had begun";
  EXPECT_GT(steps.begin()->second.second, 1e6) << "and had not ended";
  expect_refused(serve(load + "--trace-kernels-at 9999 --out-trace " + path("none.json")), "--trace-kernels-at");
  expect_refused(serve(load + "--trace-kernels-at 1"), "--out-trace");
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
  EXPECT_NEAR(hits("--dataset-name prefix_repetition"), 0.5 * 20 / 30, 0.1) << "ten texts, as vLLM takes them";
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
  expect_refused(
      run_foretoken(
          "serve --model Llama-3.1-8B --device tpu_v5e -tp 2 --max-model-len 8192 --num-prompts 5 --sustained"),
      "power_limit_w");
}

TEST_F(Serve, detailed_results_list_each_request_as_vllm_does) {
  const std::string save =
      "--num-prompts 6 --request-rate 10 --random-output-len 5 --save-result --save-detailed "
      "--label mine --metadata version=1 --result-dir " +
      folder_.string() + "/new";
  ASSERT_EQ(serve(save).status, 0);
  const Json saved = read_json_file(path("new/foretoken_serve.json"));
  EXPECT_EQ(saved.find("label")->string(), "mine");
  EXPECT_EQ(saved.find("version")->string(), "1");
  double ttft = 0;
  for (const Json& one : saved.find("ttfts")->items()) ttft += one.number();
  EXPECT_NEAR(ttft / 6 * 1e3, saved.find("mean_ttft_ms")->number(), 1e-9);
  double gaps = 0;
  for (const Json& request : saved.find("itls")->items()) {
    EXPECT_EQ(request.items().size(), 4U);
    for (const Json& gap : request.items()) gaps += gap.number();
  }
  EXPECT_NEAR(gaps / 24 * 1e3, saved.find("mean_itl_ms")->number(), 1e-9);
  for (const char* key : {"input_lens", "output_lens", "start_times", "errors"}) {
    EXPECT_EQ(saved.find(key)->items().size(), 6U) << key;
  }
}

TEST_F(Serve, results_are_appended_a_line_each) {
  const std::string save =
      "--num-prompts 2 --save-result --append-result --result-filename all.jsonl --result-dir " + folder_.string();
  ASSERT_EQ(serve(save).status, 0);
  ASSERT_EQ(serve(save).status, 0);
  const std::string text = read_file(path("all.jsonl"), 1'000'000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(parse_json(text.substr(0, text.find('\n')), "line").find("completed")->integer(), 2);
}

TEST_F(Serve, the_life_of_a_request_adds_up_to_its_latency) {
  const Outcome run = serve("--num-prompts 30 --request-rate 20 --random-output-len 40 --explain-request 7 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  const Json& life = *json.find("request");
  double sum = 0, operators = 0, steps = 0;
  for (const Json& phase : life.find("phases")->items()) sum += phase.find("ms")->number();
  EXPECT_NEAR(sum, life.find("e2el_ms")->number(), 1e-6);
  for (const Json& one : life.find("breakdown")->find("operators")->items()) operators += one.find("seconds")->number();
  for (const Json& one : life.find("breakdown")->find("step_kinds")->items()) steps += one.find("seconds")->number();
  EXPECT_NEAR(operators, steps, 0.02 * steps);
  EXPECT_LE(steps * 1e3, sum + 1e-6) << "its steps are part of its life";
}

TEST_F(Serve, the_request_at_a_percentile_of_ttft_is_explained) {
  const auto ttft_of = [&](const std::string& which) {
    const Outcome run =
        serve("--num-prompts 40 --request-rate 30 --random-output-len 20 --json --explain-request " + which);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json json = parse_json(run.out, "answer");
    if (which == "p100") {
      EXPECT_GE(json.find("request")->find("ttft_ms")->number(), json.find("p99_ttft_ms")->number());
    }
    return json.find("request")->find("ttft_ms")->number();
  };
  EXPECT_LT(ttft_of("p0"), ttft_of("p50"));
  EXPECT_LT(ttft_of("p50"), ttft_of("p100"));
  EXPECT_EQ(serve("--num-prompts 4 --explain-request p101").status, 2);
  EXPECT_EQ(serve("--num-prompts 4 --explain-request first").status, 2);
}

TEST_F(Serve, replicas_may_differ) {
  const Outcome run = serve(
      "--num-prompts 60 --request-rate 20 --random-output-len 20 --router least_outstanding --replica count=1 "
      "--replica device=l40s,count=2,max-model-len=8192 --breakdown --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_EQ(json.find("replicas")->integer(), 3);
  const auto& groups = json.find("replica_groups")->items();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[1].find("device")->string(), "l40s");
  EXPECT_LT(groups[1].find("kv_blocks")->integer(), groups[0].find("kv_blocks")->integer());
  EXPECT_EQ(json.find("completed")->integer(), 60);
}

TEST_F(Serve, one_kind_of_replica_is_the_same_by_either_flag) {
  const std::string load = "--num-prompts 40 --request-rate 20 --json ";
  EXPECT_EQ(serve(load + "--replicas 2").out, serve(load + "--replica count=2").out);
}

TEST_F(Serve, urgent_requests_wait_less_where_the_policy_looks_at_them) {
  const auto waits = [](const std::string& flags) {
    const Outcome run = serve(
        "--num-prompts 200 --random-output-len 30 --max-num-seqs 8 --priority-shares 0.2,0.8 "
        "--json " +
        flags);
    const Json json = parse_json(run.out, "answer");
    const auto& priorities = json.find("priorities")->items();
    return priorities.at(0).find("mean_ttft_ms")->number() / priorities.at(1).find("mean_ttft_ms")->number();
  };
  EXPECT_LT(waits("--scheduling-policy priority"), 0.4);
  EXPECT_GT(waits("--scheduling-policy fcfs"), 0.6);
}

TEST_F(Serve, layers_with_windows_hold_no_more_than_their_window) {
  const Outcome run = run_foretoken(
      "serve --model gpt-oss-20b --device h100_sxm --no-intervals --num-prompts 1 --random-input-len 8000 "
      "--random-output-len 200 --json --out-steps " +
      path("steps.csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  CsvReader steps{fs::path(path("steps.csv"))};
  int64_t most = 0;
  while (steps.next()) most = std::max(most, steps.integer(steps.column("kv_blocks_used")));
  // Half the layers keep all 8199 tokens, the others 128: 9 blocks of 16.
  EXPECT_EQ(most, (8199 + 15) / 16 + 9);
}

TEST_F(Serve, the_series_counts_every_token) {
  const Outcome run =
      serve("--num-prompts 50 --request-rate 5 --random-output-len 50 --json --out-series " + path("series.csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  CsvReader csv{fs::path(path("series.csv"))};
  double prompts = 0;
  while (csv.next()) prompts += csv.number(csv.column("prefill_tokens_per_s"));
  EXPECT_NEAR(prompts, static_cast<double>(parse_json(run.out, "answer").find("total_input_tokens")->integer()), 1e-3);
}

TEST_F(Serve, drafts_are_counted_as_vllm_counts_them_and_make_a_lone_client_faster) {
  const auto tpot = [](const std::string& flags) {
    const Outcome run = serve("--num-prompts 20 --max-concurrency 1 --random-output-len 100 --json " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer");
  };
  const Json plain = tpot("");
  const Json drafted =
      tpot("--speculative-config '{\"method\": \"eagle3\", \"num_speculative_tokens\": 3, \"acceptance_rate\": 0.7}'");
  EXPECT_EQ(plain.find("spec_decode_num_drafts"), nullptr);
  EXPECT_NEAR(drafted.find("spec_decode_acceptance_length")->number(), 2.53, 0.2);
  EXPECT_EQ(drafted.find("total_output_tokens")->integer(), plain.find("total_output_tokens")->integer());
  EXPECT_LT(drafted.find("mean_tpot_ms")->number(), 0.7 * plain.find("mean_tpot_ms")->number());
}

TEST_F(Serve, drafts_over_random_tokens_are_accepted_more_often) {
  const auto accepted = [](const std::string& flags) {
    const Outcome run = serve("--num-prompts 50 --random-output-len 100 --json " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer").find("spec_decode_acceptance_length")->number();
  };
  const std::string drafts = "--speculative-config '{\"method\": \"dflash\", \"num_speculative_tokens\": 3}' ";
  EXPECT_GT(accepted(drafts + "--prompt-text random"), 1.08 * accepted(drafts));
  const std::string known =
      "--speculative-config '{\"method\": \"dflash\", \"num_speculative_tokens\": 3, \"acceptance_rate\": 0.5}' ";
  EXPECT_EQ(accepted(known + "--prompt-text random"), accepted(known)) << "what is given holds for any text";
}

TEST_F(Serve, separate_workers_shield_decodes_from_prompts) {
  const auto slowest_gap = [](const std::string& flags) {
    const Outcome run =
        serve("--num-prompts 200 --request-rate 8 --random-input-len 4096 --max-model-len 8192 --json " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer").find("p99_itl_ms")->number();
  };
  EXPECT_LT(slowest_gap("--prefill-pool count=2 --decode-pool count=2"), 0.5 * slowest_gap("--replicas 4"));
}

TEST_F(Serve, conversations_are_found_in_the_memory_below_the_gpu) {
  const std::string load =
      "--dataset-name sessions --num-prompts 60 --turns 4 --request-rate 4 --random-input-len 512 --max-model-len 8192 "
      "--num-gpu-blocks-override 1000 --json ";
  const Json plain = parse_json(serve(load).out, "plain");
  const Json tiered = parse_json(serve(load + "--kv-offloading-size 100").out, "tiered");
  EXPECT_EQ(plain.find("kv_tiers"), nullptr);
  const Json* tiers = tiered.find("kv_tiers");
  ASSERT_NE(tiers, nullptr);
  const Json& host = tiers->find("tiers")->items().front();
  EXPECT_EQ(host.find("kind")->string(), "host");
  const auto found = static_cast<double>(host.find("hit_tokens")->integer() + tiers->find("gpu_hit_tokens")->integer());
  EXPECT_NEAR(found / tiered.find("total_input_tokens")->number(), tiered.find("prefix_cache_hit_share")->number(),
              1e-9);
  EXPECT_GT(tiered.find("prefix_cache_hit_share")->number(), 2 * plain.find("prefix_cache_hit_share")->number());
  EXPECT_LT(tiered.find("mean_ttft_ms")->number(), plain.find("mean_ttft_ms")->number());
}

TEST_F(Serve, an_acceptance_that_nobody_gave_is_the_usual_one_and_widens_the_intervals) {
  const auto answer = [](const std::string& more) {
    const Outcome run = run_foretoken(
        "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 20 --max-concurrency 1 --random-output-len 100 "
        "--json --speculative-config '{\"method\": \"dflash\", \"num_speculative_tokens\": 7" +
        more + "}'");
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer");
  };
  const Json assumed = answer(""), given = answer(", \"synthetic_acceptance_length\": 3.78");
  const auto width = [](const Json& json) {
    const Json& interval = *json.find("intervals")->find("mean_tpot_ms");
    return interval.find("high")->number() - interval.find("low")->number();
  };
  EXPECT_GT(width(assumed), 1.2 * width(given));
  ASSERT_NE(assumed.find("notes"), nullptr);
  EXPECT_NE(assumed.find("notes")->dump().find("no draft acceptance was given"), std::string::npos);
}

TEST_F(Serve, lengths_may_be_any_in_a_range) {
  const Outcome run = serve("--num-prompts 400 --random-input-range 1..1000 --random-output-range 1..10 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json answer = parse_json(run.out, "answer");
  EXPECT_NEAR(static_cast<double>(answer.find("total_input_tokens")->integer()), 400 * 500.5, 400 * 50);
  EXPECT_NEAR(static_cast<double>(answer.find("total_output_tokens")->integer()), 400 * 5.5, 400 * 0.5);
  expect_refused(serve("--random-input-range 5"), "1..1000");
  expect_refused(serve("--random-input-range 9..3"), "1..1000");
  expect_refused(serve("--random-input-range 1..9 --random-input-len 5"), "--random-input-len");
}

TEST_F(Serve, a_pool_for_the_experts_leaves_more_room_for_caches) {
  const std::string load =
      "serve --model Qwen3-30B-A3B --device h100_sxm --no-intervals --max-model-len 8192 "
      "--request-rate 4 --num-prompts 20 --json ";
  const Json together = parse_json(run_foretoken(load).out, "together");
  const Json apart = parse_json(run_foretoken(load + "--ffn-pool count=1").out, "apart");
  EXPECT_EQ(together.find("devices")->integer(), 1);
  EXPECT_EQ(apart.find("devices")->integer(), 2);
  EXPECT_EQ(apart.find("completed")->integer(), 20);
  // 57 of the 61 GB of weights are the experts'.
  EXPECT_GT(apart.find("kv_blocks")->integer(), 3 * together.find("kv_blocks")->integer());
}

TEST_F(Serve, wrong_speculation_and_pools_are_refused) {
  expect_refused(serve("--speculative-config '{\"method\": \"eagle9\", \"num_speculative_tokens\": 1}'"), "eagle");
  expect_refused(serve("--speculative-config '{\"method\": \"eagle\"}'"), "num_speculative_tokens");
  expect_refused(serve("--speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": 1, "
                       "\"acceptance_rate\": 0.5}'"),
                 "multi-token prediction");
  expect_refused(serve("--prefill-pool count=2"), "--decode-pool");
  expect_refused(serve("--prefill-pool cont=2 --decode-pool count=1"), "--prefill-pool");
  expect_refused(serve("--prefill-pool count=2 --decode-pool count=1 --replicas 2"), "--replicas");
}

TEST_F(Serve, wrong_load_is_refused) {
  expect_refused(serve("--request-rate fast"), "--request-rate");
  expect_refused(serve("--request-rate 0"), "--request-rate");
  expect_refused(serve("--goodput ttft=5"), "--goodput");
  expect_refused(serve("--percentile-metrics ttfb"), "did you mean ttft");
  expect_refused(serve("--metric-percentiles 101"), "--metric-percentiles");
  expect_refused(serve("--trace " + path("none.csv")), "none.csv");
  expect_refused(serve("--out-requests " + path("no/such/folder.csv")), "--out-requests");
}

TEST_F(Serve, goals_are_named_by_the_flag_that_was_typed) {
  for (const char* flag : {"--slo", "--goodput"}) {
    const auto refused = [&](const std::string& goals, const std::string& mentions) {
      const Outcome run = serve(std::string(flag) + " " + goals);
      expect_refused(run, std::string("error: ") + flag + ": ");
      expect_refused(run, mentions);
    };
    refused("itl:50", "expected one of ttft, tpot, e2e\n");
    refused("tfft:50", "did you mean ttft?");
    refused("ttft:fast", "a time such as 500ms");
    refused("'ttft<500ms@p99'", "`foretoken plan serve` takes limits at percentiles");
    refused("ttft:500,ttft:300", "one limit for each metric");
  }
}

TEST_F(Serve, goals_and_rates_are_taken_in_the_units_that_people_use) {
  const auto goodput = [](const std::string& flags) {
    const Outcome run = serve("--num-prompts 40 --request-rate 20 --json " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer").find("request_goodput")->number();
  };
  const double all = goodput("--slo ttft:10000"), none = goodput("--slo ttft:1");
  EXPECT_GT(all, 1);
  EXPECT_EQ(none, 0);
  EXPECT_EQ(goodput("--slo ttft:10s"), all);
  EXPECT_EQ(goodput("--slo 'ttft<0.001s'"), none);
  EXPECT_EQ(goodput("--goodput ttft:10s,e2el:1ms"), none) << "both count";
  const auto answer = [](const std::string& rate) {
    const Outcome run = serve("--num-prompts 20 --request-rate " + rate);
    EXPECT_EQ(run.status, 0) << rate << run.err;
    return run.out;
  };
  EXPECT_EQ(answer("300/min"), answer("5"));
  EXPECT_EQ(answer("18000/h"), answer("5"));
  EXPECT_EQ(answer("5/s"), answer("5"));
  for (const char* wrong : {"fast/min", "300/day", "/min"}) {
    expect_refused(serve(std::string("--request-rate ") + wrong), std::string("--request-rate: ") + wrong);
  }
}

TEST_F(Serve, what_intervals_hold_is_said_of_runs_that_are_not_repeated) {
  write_file(path("trace.csv"), "arrival_s,input_tokens,output_tokens\n0,100,20\n0,120,30\n0.1,90,25\n0.2,110,20\n");
  const std::string whole_trace =
      "serve --model Llama-3.1-8B --device h100_sxm --max-concurrency 2 --trace " + path("trace.csv");
  EXPECT_NE(in_one_line(run_foretoken(whole_trace).out).find("are simulated once, without intervals"),
            std::string::npos);
  const std::string seeds = in_one_line(run_foretoken(whole_trace + " --num-seeds 2").out);
  EXPECT_EQ(seeds.find("without intervals"), std::string::npos) << seeds;
  EXPECT_NE(seeds.find("The intervals show the variation between random seeds only"), std::string::npos) << seeds;
}

TEST_F(Serve, a_model_that_does_not_fit_is_answered_with_what_would_help) {
  const Outcome run = run_foretoken("serve --model Llama-3.1-70B --device h100_sxm --num-prompts 1");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(run.out.find("Any of these would do:"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("-tp 4"), std::string::npos) << run.out;
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
  expect_refused(run_foretoken("validate serving --data " + cases + " --own-blocks"), "--own-blocks");
  expect_refused(run_foretoken("validate serving --run " + folder_.string() + " --kinds dense"), "--kinds");
  expect_refused(run_foretoken("validate serving --data " + cases + " --kinds sparse"), "dense, moe");
}

// 28,000 tokens fit in the blocks of an L4 as we count them, not in the fewest that there may be.
TEST_F(Serve, a_replayed_request_that_fewer_blocks_refuse_keeps_an_interval_of_real_times) {
  write_file(path("meta.json"), R"({"model": "Llama-3.1-8B", "engine_kwargs": {"max_model_len": 30000}, "gpu": "l4"})");
  write_file(path("requests.csv"),
             "request_id,input_tokens,output_tokens,arrival_client_s,queued_s,first_token_s,last_token_s\n"
             "0,28000,3,0,0.1,9,9.5\n");
  const Outcome run = run_foretoken("validate serving --run " + folder_.string() + " --out " + path("predicted.csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  CsvReader rows{fs::path(path("predicted.csv"))};
  int count = 0;
  for (; rows.next(); ++count) {
    const double predicted = rows.number(rows.column("predicted"));
    EXPECT_GT(rows.number(rows.column("low")), 0.5 * predicted);
    EXPECT_GT(rows.number(rows.column("high")), predicted);
  }
  EXPECT_EQ(count, 3);
}

// Both set the engine up in one way: graphs, server, router.
TEST_F(Serve, a_measured_point_is_answered_as_the_same_run_by_hand) {
  struct Point {
    const char *load, *ranks, *flags;
  };
  for (const Point& point : {Point{"closed loop,8,,40", "1", "--max-concurrency 8 --num-prompts 40"},
                             Point{"closed loop,12,,60", "3", "--max-concurrency 12 --num-prompts 60 -dp 3"},
                             Point{"offline (all at once),,,40", "2", "--num-prompts 40 -dp 2"}}) {
    write_file(
        path("cases.csv"),
        "case_id,tier,gpu,model,engine,engine_version,weight_dtype,tp,dp,mode,isl,osl,arrival,concurrency,rate_rps,"
        "num_requests,engine_flags,ttft_ms,ttft_stat,tpot_ms,tpot_stat\n"
        "a,B,H100-SXM-80GB,Llama-3.1-8B,vllm,0.19.0,bf16,1," +
            std::string(point.ranks) + ",agg,500,50," + point.load +
            ",\"max-num-seqs 9; max-num-batched-tokens 512\",50,mean,8,mean\n");
    const Outcome validated =
        run_foretoken("validate serving --data " + path("cases.csv") + " --out " + path("predicted.csv"));
    ASSERT_EQ(validated.status, 0) << validated.err;
    const Outcome served = serve(std::string(point.flags) +
                                 " --random-input-len 500 --random-output-len 50 --max-num-seqs 9 "
                                 "--max-num-batched-tokens 512 --max-model-len 806 --json");
    ASSERT_EQ(served.status, 0) << served.err;
    const Json json = parse_json(served.out, "answer");
    CsvReader predicted{fs::path(path("predicted.csv"))};
    int rows = 0;
    for (; predicted.next(); ++rows) {
      const std::string metric(predicted.cell(predicted.column("metric")));
      const double by_hand = json.find("mean_" + metric)->number();
      EXPECT_NEAR(predicted.number(predicted.column("predicted")) / by_hand, 1, 1e-6) << point.load << " " << metric;
    }
    EXPECT_EQ(rows, 2) << validated.out;
  }
}

// 256 sequences of 1628 tokens at their end, in blocks of 16.
TEST_F(Serve, the_cache_is_as_full_as_at_the_end_of_long_outputs) {
  const Outcome run = serve("--num-prompts 256 --random-input-len 128 --random-output-len 1500 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_NEAR(json.find("peak_kv_use")->number(), 0.93, 0.02);
}

// Every request of ours takes what it does there.
void expect_vidurs_ends(const fs::path& answer, const fs::path& run, size_t count) {
  CsvReader ours{answer}, theirs{run};
  std::map<int64_t, double> seconds;  // rows are in the order of ends
  while (ours.next()) seconds[ours.integer(ours.column("id"))] = ours.number(ours.column("e2el_ms")) / 1e3;
  ASSERT_EQ(seconds.size(), count);
  while (theirs.next()) {
    const int64_t id = theirs.integer(theirs.column("request_id"));
    EXPECT_NEAR(seconds.at(id) / theirs.number(theirs.column("e2e_s")), 1, 1e-4) << id;
  }
}

// Its tables are of the engine alone: no server stands before it.
using ServeNeedsData = Serve;
TEST_F(ServeNeedsData, a_run_on_vidurs_tables_ends_every_request_when_vidur_says) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const fs::path replay = fs::path(data) / "vidur/replay";
  const Outcome run = run_foretoken(
      "serve --model Llama-2-7b-hf --device a100_sxm --scheduler vidur_vllm --max-num-seqs 128 "
      "--max-num-batched-tokens 4096 --num-gpu-blocks-override 7648 --no-intervals --vidur-tables " +
      (replay / "cost_tables/llama2-7b_a100_tp1").string() + " --trace " +
      (replay / "requests/uniform128-512_r20_poisson2.0_seed42_n200.csv").string() + " --out-requests " +
      path("requests.csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  expect_vidurs_ends(path("requests.csv"), replay / "runs/T8_llama2-7b_a100_tp1_vllm_n200.csv", 200);
}

TEST_F(ServeNeedsData, vidurs_run_on_two_pipeline_stages_of_two_gpus_ends_every_request_when_vidur_says) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const fs::path replay = fs::path(data) / "vidur/replay";
  const Outcome run = run_foretoken(
      "serve --model Llama-2-70b --device a100_sxm -tp 2 -pp 2 --scheduler vidur_vllm --max-num-seqs 128 "
      "--max-num-batched-tokens 4096 --num-gpu-blocks-override 32768 --no-intervals --vidur-tables " +
      (replay / "cost_tables/llama2-70b_a100_tp2").string() + " --trace " +
      (replay / "requests/splitwiseconv_poisson2.0_seed42_n1000.csv").string() + " --out-requests " +
      path("requests.csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  expect_vidurs_ends(path("requests.csv"), replay / "runs/L1_llama2-70b_a100_tp2pp2_vllm_n1000.csv", 1000);
}

TEST_F(Serve, a_page_does_not_change_the_answer) {
  const std::string load = "--request-rate 4 --num-prompts 40";
  const Outcome plain = serve(load), shown = serve(load + " --html " + path("run.html"));
  EXPECT_EQ(shown.out, plain.out + "wrote " + path("run.html") + "\n");
}

TEST_F(Serve, a_page_of_a_device_whose_power_is_not_known_says_so) {
  const Outcome run = run_foretoken(
      "serve --model Llama-3.1-8B --device tpu_v5p --no-intervals --request-rate 0.1 --num-prompts 4 "
      "--random-output-len 8 --html " +
      path("run.html"));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string html = read_file(path("run.html"), 1 << 22);
  EXPECT_NE(html.find("The power of these devices is not known"), std::string::npos);
}

TEST_F(Serve, a_page_holds_the_answer_its_curves_and_the_command) {
  const Outcome run = serve("--request-rate 4 --num-prompts 40 --goodput ttft:300 --html " + path("run.html"));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string html = read_file(path("run.html"), 1 << 22);
  for (const char* part : {"serves 4 requests/s", "How long requests wait", "Latency against load", "The run over time",
                           "Where the time goes", "Roofline", "decode qkv_proj", "Memory per device", "Energy and cost",
                           "Facility, per output token", "Per million output tokens", "How far to trust it",
                           "Serving engine", "foretoken serve --model Llama-3.1-8B"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(html.find("nan"), std::string::npos);
  const Outcome again = serve("--request-rate 4 --num-prompts 40 --goodput ttft:300 --html " + path("run.html"));
  EXPECT_EQ(read_file(path("run.html"), 1 << 22), html);
}

TEST_F(Serve, says_where_the_process_that_sends_answers_is_the_limit) {
  const char* load = "--max-concurrency 512 --num-prompts 512 --random-input-len 16 --random-output-len 64 --engine ";
  const auto says = [&](const char* engine) {
    const Outcome run = serve(std::string(load) + engine);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out.find("sends the answers") != std::string::npos;
  };
  EXPECT_TRUE(says("sglang"));
  EXPECT_FALSE(says("vllm")) << "it sends answers without such a process";
}

}  // namespace foretoken::serve_test
