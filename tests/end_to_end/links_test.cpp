// Ranks have places on a machine: what they send goes over the links between them, and the answer says which.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::links_test {

using testing::HasSubstr;

Json answer(const std::string& line) {
  const Outcome run = run_foretoken(line + " --json");
  EXPECT_TRUE(run.status == 0 || run.status == 3) << line << "\n" << run.err;  // 3: not enough memory
  return parse_json(run.out, line);
}

// Seconds of one call of an operator of the first stage.
double call_seconds(const Json& step, const std::string& name) {
  for (const JsonView& one : JsonView(step, "step").at("stages").items().front().at("operators").items()) {
    if (one.at("name").string() == name) return one.at("seconds").at("value").number() / one.at("count").number();
  }
  ADD_FAILURE() << "no operator " << name;
  return 0;
}

double width(const Json& step) {
  const JsonView seconds = JsonView(step, "step").at("seconds");
  return seconds.at("high").number() / seconds.at("low").number();
}

bool has_note(const Json& document, const std::string& text) {
  for (const JsonView& note : JsonView(document, "answer").at("device_notes").items()) {
    if (note.string().find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(Links, an_all_reduce_over_two_nodes_takes_what_the_collective_command_says) {
  const Json step = answer("step --model Llama-3.1-70B --device h100_sxm -tp 16 --batch 32 --context-len 1024");
  EXPECT_TRUE(has_note(step, "16 ranks span 2 nodes of 8 GPUs"));
  // 32 tokens of 8,192 values in bf16.
  const Json alone = answer("collective --cluster h100_ib_rail --op all_reduce --bytes 524288 --ranks 16");
  EXPECT_NEAR(call_seconds(step, "tp_all_reduce"),
              JsonView(alone, "collective").at("rows").items().front().at("seconds").at("value").number(), 1e-9);
  const JsonView last = JsonView(step, "step").at("links").items().back();
  EXPECT_TRUE(last.at("between_nodes").boolean());
  EXPECT_GT(last.at("share").number(), 0.05);
}

TEST(Links, tokens_travel_between_nodes_as_deepep_carries_them) {
  const Json step = answer(
      "step --model DeepSeek-V3 --device h100_sxm -tp 1 -dp 64 --enable-expert-parallel --all2all-backend all_to_all "
      "--batch 128 --context-len 1024 --routing balanced");
  const Json alone = answer(
      "collective --cluster h100_ib_rail --ranks 64 --op dispatch --kernel deepep-low-latency --tokens 128 --hidden "
      "7168 "
      "--top-k 8 --experts 256");
  const double expected = JsonView(alone, "collective").at("rows").items().front().at("seconds").at("value").number();
  EXPECT_NEAR(call_seconds(step, "ep_dispatch") / expected, 1, 0.02);
}

TEST(Links, tokens_travel_inside_a_node_as_the_engine_is_told) {
  const auto seconds = [](const std::string& backend, const char* call) {
    return call_seconds(answer("step --model DeepSeek-V3 --device h200_sxm -dp 8 --enable-expert-parallel --batch 128 "
                               "--context-len 1024 --routing balanced --all2all-backend " +
                               backend),
                        call);
  };
  const auto alone = [](const std::string& operation, const std::string& kernel) {
    const Json rows = answer("collective --node hgx_h200 --op " + operation + " --kernel " + kernel +
                             " --tokens 128 --hidden 7168 --top-k 8 --experts 256");
    return JsonView(rows, "collective").at("rows").items().front().at("seconds").at("value").number();
  };
  for (const auto& [operation, call] : {std::pair("dispatch", "ep_dispatch"), std::pair("combine", "ep_combine")}) {
    EXPECT_NEAR(seconds("deepep", call) / alone(operation, "deepep-low-latency"), 1, 0.02) << operation;
    EXPECT_NEAR(seconds("deepep_high_throughput", call) / alone(operation, "deepep-normal"), 1, 0.02) << operation;
    EXPECT_EQ(seconds("deepep", call), seconds("deepep_low_latency", call)) << operation;
    EXPECT_EQ(seconds("none", call), seconds("allgather_reducescatter", call)) << operation;
  }
}

TEST(Links, the_busiest_rank_decides_how_long_tokens_travel) {
  const auto step = [](const std::string& more) {
    return answer(
        "step --model DeepSeek-V3 --device h100_sxm --stack sglang -dp 32 --enable-expert-parallel "
        "--all2all-backend deepep --phase prefill --batch 4 --input-len 2048 --num-redundant-experts 32 " +
        more);
  };
  const Json even = step("--expert-popularity balancedness:1"), uneven = step("--expert-popularity balancedness:0.8");
  for (const char* call : {"ep_dispatch", "ep_combine", "experts"}) {
    EXPECT_NEAR(call_seconds(uneven, call) / call_seconds(even, call), 1.25, 0.06) << call;
  }
  const Json halves = step("--expert-popularity balancedness:0.8 --enable-two-batch-overlap");
  EXPECT_GT(JsonView(halves, "step").at("gap").at("hidden_communication_seconds").number(), 0);
  EXPECT_LT(JsonView(halves, "step").at("seconds").at("value").number(),
            JsonView(uneven, "step").at("seconds").at("value").number());
  EXPECT_EQ(run_foretoken("step --model DeepSeek-V3 --device h100_sxm --expert-popularity balancedness:1.2").status, 2);
}

TEST(Links, a_cluster_can_be_named_and_must_have_the_device_and_room) {
  const std::string step = "step --model Llama-3.1-70B --device h100_sxm -tp 8 -pp 2 --batch 8 --context-len 512 ";
  EXPECT_FALSE(has_note(answer(step + "--cluster h100_roce_pods"), "span"));
  EXPECT_GT(call_seconds(answer(step + "--cluster h100_roce_pods --link nic-bandwidth=5"), "pp_send"),
            call_seconds(answer(step + "--cluster h100_roce_pods"), "pp_send"));
  for (const char* wrong : {"--cluster b200_ib_rail", "--node hgx_h100 --cluster h100_ib_rail", "--node l40s_pcie",
                            "--link bandwith=3", "--link pcie=2", "--link bandwidth=20us", "--link latency=20GB/s",
                            "--link nic-bandwidth=0", "--rank-order tp-ep"}) {
    EXPECT_EQ(run_foretoken(step + wrong).status, 2) << wrong;
  }
}

TEST(Links, pcie_boards_have_wide_intervals_until_their_link_is_given) {
  const std::string step = "step --model Llama-3.1-8B --device l40s -tp 4 --batch 64 --context-len 512 ";
  const Json unknown = answer(step), given = answer(step + "--link bandwidth=20,latency=10");
  EXPECT_TRUE(has_note(unknown, "--link bandwidth=GB/s"));
  EXPECT_FALSE(has_note(given, "--link"));
  EXPECT_GT(width(unknown), 1.5 * width(given));
  EXPECT_DOUBLE_EQ(call_seconds(answer(step + "--link bandwidth=160Gb/s,latency=0.01ms"), "tp_all_reduce"),
                   call_seconds(given, "tp_all_reduce"));
  // 64 tokens of 4,096 values in bf16, 6 hops of a quarter of them.
  EXPECT_NEAR(call_seconds(given, "tp_all_reduce"), 6 * (10e-6 + 64 * 4096 * 2 / 4.0 / 20e9), 1e-9);
  // A node with a name is still one host of many.
  EXPECT_EQ(call_seconds(answer(step + "--node l40s_pcie"), "tp_all_reduce"), call_seconds(unknown, "tp_all_reduce"));
}

TEST(Links, gpus_that_are_alone_in_their_node_do_not_talk_over_pcie) {
  const Json step = answer("step --model Llama-3.1-8B --device gb10 -tp 2 --batch 1 --context-len 512");
  EXPECT_TRUE(has_note(step, "2 ranks span 2 nodes of 1 GPU. "));
  EXPECT_TRUE(has_note(step, "1 network card of 200 Gbit/s"));
  EXPECT_FALSE(has_note(step, "PCIe"));
}

TEST(Links, nvlink_bridges_join_pairs_alone) {
  const std::string step = "step --model Llama-3.1-8B --device h100_pcie --batch 64 --context-len 512 ";
  const std::string bridged = " --link nvlink-pairs";
  EXPECT_LT(call_seconds(answer(step + "-tp 2" + bridged), "tp_all_reduce"),
            0.7 * call_seconds(answer(step + "-tp 2"), "tp_all_reduce"));
  EXPECT_EQ(call_seconds(answer(step + "-tp 4" + bridged), "tp_all_reduce"),
            call_seconds(answer(step + "-tp 4"), "tp_all_reduce"));
}

TEST(Links, served_tokens_go_over_links_that_the_answer_names) {
  const std::string serve =
      "serve --model Llama-3.1-8B --device l40s -tp 2 --max-model-len 4096 --request-rate 2 --num-prompts 40 ";
  const Json unknown = answer(serve), slow = answer(serve + "--link bandwidth=2,latency=40");
  EXPECT_TRUE(has_note(unknown, "PCIe"));
  const auto ttft = [](const Json& run) { return JsonView(run, "serve").at("mean_ttft_ms").number(); };
  EXPECT_GT(ttft(slow), ttft(unknown));
  const std::string text = run_foretoken(serve).out;
  EXPECT_THAT(text, HasSubstr("over PCIe"));
}

TEST(Links, experts_that_divide_with_their_copies_are_spread) {
  const std::string step =
      "step --model DeepSeek-V3 --device h200_sxm -dp 72 --enable-expert-parallel --batch 64 --context-len 1024 ";
  EXPECT_EQ(run_foretoken(step).status, 2);
  EXPECT_EQ(run_foretoken(step + "--num-redundant-experts 32").status, 0);
  EXPECT_EQ(run_foretoken(step + "--num-redundant-experts 31").status, 2);
}

TEST(Links, a_plan_asks_for_the_bandwidth_of_a_pcie_host_where_its_gpus_talk) {
  const std::string plan =
      "plan serve --quick --model Llama-3.1-8B --hardware 4xL40S --slo ttft:5000,tpot:200 --engines vllm -pp 1 "
      "--no-disaggregate ";
  const std::string together = in_one_line(run_foretoken(plan + "-tp 4").out);
  EXPECT_THAT(together, HasSubstr("the interval covers 5.1 to 24 GB/s")) << together;
  EXPECT_THAT(together, HasSubstr("a large all-reduce among 4 GPUs (busbw of nccl-tests), given as --link bandwidth"));
  const Outcome alone = run_foretoken(plan + "-tp 1");
  EXPECT_EQ(alone.status, 0) << alone.err;
  EXPECT_THAT(in_one_line(alone.out), testing::Not(HasSubstr("over PCIe")));
}

double train_seconds(const std::string& more) {
  return JsonView(answer(more), "train").at("seconds").at("value").number();
}

TEST(Links, training_takes_the_links_that_were_given) {
  const std::string tensor = "train --model Llama-3.1-8B --global-batch-size 16 --device l40s --devices 4 -tp 4 ";
  EXPECT_GT(train_seconds(tensor + "--link bandwidth=2,latency=40"),
            1.2 * train_seconds(tensor + "--link bandwidth=20"));
  const std::string nodes = "train --model Llama-3.1-8B --global-batch-size 128 --device h100_sxm --devices 128 ";
  EXPECT_GT(train_seconds(nodes + "--link nic-bandwidth=2"), 1.1 * train_seconds(nodes));
  EXPECT_GT(train_seconds(nodes + "-tp 8 --link bandwidth=20"), 1.1 * train_seconds(nodes + "-tp 8"));
  EXPECT_EQ(run_foretoken(nodes + "--link bandwith=2").status, 2);
  EXPECT_EQ(run_foretoken("plan train --model Llama-3.1-8B --device l40s --devices 4 --global-batch-size 16 --link "
                          "bandwidth=2 --best 1")
                .status,
            0);
  const Outcome pools = run_foretoken(
      "train --model Llama-3.1-8B --pool h100_sxm:8 --pool a100_sxm:8 --global-batch-size 128 --link bandwidth=2");
  EXPECT_EQ(pools.status, 2);
  EXPECT_THAT(pools.err, HasSubstr("--link"));
}

TEST(Links, a_slower_host_slows_training_and_serving_down) {
  const std::string train =
      "train --model Llama-3.2-1B --device h100_sxm --devices 8 --global-batch-size 64 --seq-length 512 ";
  EXPECT_GT(train_seconds(train + "--host-factor 8"), 1.5 * train_seconds(train));
  EXPECT_EQ(train_seconds(train + "--host-factor 1"), train_seconds(train));
  const std::string step =
      "step --model Llama-3.2-1B --device h100_sxm --phase train --input-len 512 --stack megatron-bridge-26.08 ";
  EXPECT_GT(train_seconds(step + "--host-factor 8"), 1.5 * train_seconds(step));
  const std::string plan =
      "plan train --model Llama-3.2-1B --device h100_sxm --devices 8 --global-batch-size 64 --seq-length 512 --best 1 ";
  const auto planned = [](const std::string& line) {
    return JsonView(answer(line), "plan").at("fastest").at("seconds").at("value").number();
  };
  EXPECT_GT(planned(plan + "--host-factor 20"), planned(plan));
  const std::string serve =
      "serve --model Llama-3.2-1B --device h100_sxm --request-rate 4 --num-prompts 40 --max-model-len 4096 ";
  const auto tpot = [](const std::string& line) { return JsonView(answer(line), "serve").at("mean_tpot_ms").number(); };
  EXPECT_GT(tpot(serve + "--host-factor 10"), 2 * tpot(serve));
  const std::string layouts =
      "plan serve --quick --model Llama-3.2-1B --hardware 1xh100_sxm --slo ttft:5000,tpot:200 --engines vllm "
      "--no-disaggregate ";
  EXPECT_NE(run_foretoken(layouts + "--host-factor 30").out, run_foretoken(layouts).out);
}

TEST(Links, pools_say_what_carries_the_kv_cache) {
  const std::string serve =
      "serve --model Llama-3.1-8B --device h100_sxm --max-model-len 4096 --request-rate 2 --num-prompts 20 ";
  const std::string apart = serve + "--prefill-pool count=8 --decode-pool count=8";
  const Json nodes = answer(apart);
  EXPECT_TRUE(has_note(nodes, "foretoken assumes h100_ib_rail"));
  const JsonView link = JsonView(nodes, "serve").at("replica_groups").items().front().at("kv_transfer");
  EXPECT_TRUE(link.at("between_nodes").boolean());
  EXPECT_EQ(link.at("bandwidth_bytes_per_second").number(), 50e9);
  EXPECT_EQ(link.at("bytes_per_token").number(), 32 * 2 * 8 * 128 * 2);
  EXPECT_THAT(in_one_line(run_foretoken(apart).out), HasSubstr("KV transfer: each GPU sends 131 kB per prompt token"));
  EXPECT_FALSE(has_note(answer(apart + " --cluster h100_ib_rail"), "KV caches move"));
  const Json inside = answer(serve + "--prefill-pool count=1 --decode-pool count=1");
  EXPECT_FALSE(has_note(inside, "KV caches move"));
  EXPECT_THAT(run_foretoken(serve + "--prefill-pool count=1 --decode-pool count=1").out, HasSubstr("KV transfer:"));
  const Json mixed = answer(serve + "--prefill-pool count=1 --decode-pool count=1,device=h200_sxm");
  EXPECT_TRUE(has_note(mixed, "the pools have different GPUs"));
  const Json cards = answer(
      "serve --model Llama-3.1-8B --device l40s --max-model-len 4096 --request-rate 2 --num-prompts 20 "
      "--prefill-pool count=8 --decode-pool count=8");
  EXPECT_TRUE(has_note(cards, "2 network cards of 200 Gbit/s, 6.25 GB/s per GPU"));
}

// The default of wide expert parallelism is a power law, which is less even than zipf:0.8.
TEST(Links, uneven_experts_are_never_faster_than_even_ones_at_large_batches) {
  const auto seconds = [](const std::string& more) {
    return call_seconds(answer("step --model DeepSeek-V3 --device h100_sxm -dp 64 --enable-expert-parallel "
                               "--batch 8192 --context-len 1024 " +
                               more),
                        "experts");
  };
  double before = seconds("--routing balanced");
  for (const char* popularity : {"zipf:0", "zipf:0.4", "zipf:0.8", "zipf:1.2"}) {
    const double now = seconds(std::string("--expert-popularity ") + popularity);
    EXPECT_GE(now, before) << popularity;
    before = now;
  }
}

}  // namespace foretoken::links_test
