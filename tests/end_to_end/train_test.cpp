// foretoken train, rlhf and validate training as people call them.
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"

namespace foretoken::train_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string small_train = "train --model Llama-3.1-8B --cluster h100_ib_rail --tier roofline";

Json train_json(const std::string& line) {
  const Outcome run = run_foretoken(line + " --json");
  EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
  EXPECT_EQ(run.err, "") << line;
  return parse_json(run.status == 0 ? run.out : "{}", line);
}

class TrainCommandFiles : public CommandTest {};

TEST(TrainCommand, text_and_json_say_the_same_of_a_step) {
  const std::string line = small_train +
                           " --devices 32 -tp 4 -pp 2 --sequence-parallel --global-batch-size 64 --sharding optimizer "
                           "--train-tokens 1T";
  const Json json = train_json(line);
  const JsonView root(json, "train");
  const double seconds = root.at("seconds").at("value").number();
  double sum = 0;
  for (const auto& [name, part] : root.at("parts_seconds").members()) sum += part.number();
  EXPECT_NEAR(sum, seconds, 1e-9 * seconds);
  EXPECT_LE(root.at("seconds").at("low").number(), seconds);
  EXPECT_GE(root.at("seconds").at("high").number(), seconds);
  EXPECT_EQ(root.at("plan").at("data").integer(), 4);
  EXPECT_EQ(root.at("plan").at("micro_batches").integer(), 16);
  EXPECT_EQ(root.at("memory").at("stages").items().size(), 2U);
  EXPECT_EQ(root.at("stack").string(), "megatron-bridge-26.08");
  for (const char* key : {"p05", "p50", "p95", "p99", "mean"}) EXPECT_GT(root.at("step_times").at(key).number(), 0);
  EXPECT_GT(root.at("flops").at("mfu").number(), 0.05);
  EXPECT_LT(root.at("flops").at("mfu").number(), 1);
  EXPECT_GT(root.at("run").at("days").at("value").number(), 0);
  EXPECT_TRUE(root.has("notes"));

  const Outcome text = run_foretoken(line);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("tensor 4 with sequence parallelism"), HasSubstr("MFU"), HasSubstr("bubble"),
                              HasSubstr("1.00 T tokens"), HasSubstr("failures")));
  std::istringstream lines(text.out);
  for (std::string one; std::getline(lines, one);) EXPECT_LE(one.size(), 100U) << one;
  EXPECT_EQ(run_foretoken(line).out, text.out);
}

TEST(TrainCommand, one_message_lists_every_constraint_that_does_not_hold) {
  const Outcome run = run_foretoken(small_train +
                                    " --devices 32 -tp 5 -pp 3 --num-virtual-stages-per-pipeline-rank 12 "
                                    "--micro-batch-size 3 --global-batch-size 64 --context-parallel-size 3");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  for (const char* flag : {"--tensor-model-parallel-size", "--num-virtual-stages-per-pipeline-rank",
                           "--global-batch-size", "--seq-length"}) {
    EXPECT_THAT(run.err, HasSubstr(flag));
  }
}

TEST(TrainCommand, wrong_input_ends_with_status_2_and_what_was_expected) {
  for (const auto& [line, part] : std::vector<std::pair<std::string, std::string>>{
           {"train --cluster h100_ib_rail", "--model"},
           {"train --model Llama-3.1-8B", "--cluster"},
           {small_train + " --devices 64 --nodes 2", "--devices"},
           {small_train + " --stack megatorn", "--stack"},
           {small_train + " --precision fp9", "fp8"},
           {small_train + " --train-tokens lots", "--train-tokens"},
           {small_train + " --checkpoint-interval 100", "--train-tokens"},
           {small_train + " --schedule 1b1f", "1f1b"},
           {small_train + " --num-layers-per-virtual-pipeline-stage 5 -pp 2", "divisor"},
           {small_train + " --config nowhere.yaml", "nowhere.yaml"}}) {
    const Outcome run = run_foretoken(line);
    EXPECT_EQ(run.status, 2) << line;
    EXPECT_THAT(run.err, HasSubstr(part)) << line;
  }
}

TEST(TrainCommand, devices_and_nodes_together_put_as_many_on_each_node) {
  const auto data_seconds = [](const std::string& machine) {
    const Json json = train_json("train --model Llama-3.1-8B --tier roofline --sharding parameters " + machine);
    return JsonView(json, "train").at("seconds").at("value").number();
  };
  const double one = data_seconds("--device h100_sxm --devices 8 --nodes 1");
  EXPECT_EQ(one, data_seconds("--device h100_sxm --devices 8"));
  EXPECT_GT(data_seconds("--device h100_sxm --devices 8 --nodes 2"), 1.02 * one);
  EXPECT_GT(data_seconds("--cluster h100_ib_rail --devices 8 --nodes 2"), 1.02 * one);
  const Outcome odd = run_foretoken("train --model Llama-3.1-8B --device h100_sxm --devices 6 --nodes 4");
  EXPECT_EQ(odd.status, 2);
  EXPECT_THAT(odd.err, HasSubstr("a multiple of the 4 nodes"));
}

TEST(TrainCommand, replicas_that_are_named_must_be_those_there_are) {
  EXPECT_EQ(run_foretoken(small_train + " --devices 16 -tp 2 -pp 2 -dp 4 --sharding parameters").status, 0);
  const Outcome wrong = run_foretoken(small_train + " --devices 16 -tp 2 -pp 2 -dp 8");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("4: 16 GPUs"));
}

TEST(TrainCommand, what_lies_in_host_memory_is_shown_and_must_fit_there) {
  const std::string line =
      "train --model Llama-3.1-8B --device h100_sxm --devices 8 --stack torchtitan --tier roofline "
      "--activation-offload-fraction 1 --seq-length ";
  const Outcome small = run_foretoken(line + "4096");
  EXPECT_EQ(small.status, 0);
  EXPECT_THAT(small.out, HasSubstr("Host memory per node: "));
  const Outcome large = run_foretoken(line + "65536");
  EXPECT_EQ(large.status, 3);
  EXPECT_THAT(large.out + large.err, HasSubstr("Out of host memory"));
}

TEST(TrainCommand, a_model_of_13_billion_trains_on_one_v100_with_zero_offload) {  // arXiv 2101.06840
  const std::string line =
      "train --model facebook/opt-13b --device v100_sxm --devices 1 --sharding gradients --optimizer-cpu-offload "
      "--recompute-granularity full --precision fp16 --seq-length 1024 --micro-batch-size 1 --tier roofline --stack ";
  EXPECT_EQ(run_foretoken(line + "deepspeed").status, 0);
  EXPECT_EQ(run_foretoken(line + "megatron-core-2024").status, 3) << "it keeps gradients on the GPU";
}

TEST_F(TrainCommandFiles, a_deepspeed_file_whose_batch_sizes_contradict_each_other_is_refused) {
  const std::string file = write("ds.json", R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
      "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 3}})");
  const std::string line = small_train + " --config " + file + " --devices ";
  EXPECT_EQ(run_foretoken(line + "8").status, 0);
  const Outcome more = run_foretoken(line + "16");
  EXPECT_EQ(more.status, 2);
  EXPECT_THAT(more.err, AllOf(HasSubstr("train_batch_size"), HasSubstr("128")));
  EXPECT_EQ(run_foretoken(line + "16 --global-batch-size 128").status, 0);
}

TEST_F(TrainCommandFiles, a_model_that_is_named_needs_no_sizes_of_the_file) {
  const std::string file = write("nemo.yaml",
                                 "model:\n  num_layers: 32\n  micro_batch_size: 1\n"
                                 "  tensor_model_parallel_size: 2\n  global_batch_size: 16\n");
  const Outcome run = run_foretoken(small_train + " --config " + file + " --devices 8");
  EXPECT_THAT(run.out, Not(HasSubstr("no model:"))) << run.err;
}

TEST_F(TrainCommandFiles, a_megatron_script_says_model_plan_and_batch) {
  const std::string script = write("train.sh", R"(#!/bin/bash
GPUS_PER_NODE=8
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes 4 pretrain_gpt.py \
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
  --tokenizer-type GPT2BPETokenizer --micro-batch-size 2 --global-batch-size 256 --tensor-model-parallel-size 4 \
  --pipeline-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --bf16 --log-interval 7
)");
  const Json json = train_json("train --config " + script + " --cluster h100_ib_rail --tier roofline");
  const JsonView plan = JsonView(json, "train").at("plan");
  EXPECT_EQ(plan.at("devices").integer(), 32);
  EXPECT_EQ(plan.at("tensor").integer(), 4);
  EXPECT_EQ(plan.at("data").integer(), 4);
  EXPECT_EQ(plan.at("micro_batch").integer(), 2);
  EXPECT_EQ(plan.at("global_batch").integer(), 256);
  EXPECT_EQ(plan.at("sharding").string(), "optimizer");
  EXPECT_EQ(JsonView(json, "train").at("sequence_length").integer(), 2048);

  const Json other = train_json("train --config " + script + " --cluster h100_ib_rail --tier roofline -tp 8");
  EXPECT_EQ(JsonView(other, "train").at("plan").at("tensor").integer(), 8) << "a flag beside the file wins";
}

TEST_F(TrainCommandFiles, deepspeed_json_says_sharding_and_accumulation_of_a_model_that_is_named) {
  const std::string config = write("ds.json", R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
    "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}})");
  const Json json = train_json(
      small_train + " --devices 16 --stack megatron-deepspeed --recompute-granularity full --config " + config);
  const JsonView plan = JsonView(json, "train").at("plan");
  EXPECT_EQ(plan.at("sharding").string(), "parameters");
  EXPECT_EQ(plan.at("micro_batches").integer(), 4);
  EXPECT_EQ(plan.at("global_batch").integer(), 128);
  const Outcome nameless = run_foretoken("train --cluster h100_ib_rail --config " + config);
  EXPECT_EQ(nameless.status, 2);
  EXPECT_THAT(nameless.err, HasSubstr("--model"));
}

TEST_F(TrainCommandFiles, llm_foundry_yaml_says_model_and_full_shards) {
  const std::string config = write("mpt.yaml", R"(max_seq_len: 2048
model:
  name: mpt_causal_lm
  d_model: 2048
  n_heads: 16
  n_layers: 24
  expansion_ratio: 4
  max_seq_len: ${max_seq_len}
  vocab_size: 50368
global_train_batch_size: 256
device_train_microbatch_size: 4
precision: amp_bf16
fsdp_config:
  sharding_strategy: FULL_SHARD
  activation_checkpointing: true
)");
  const Json json = train_json(
      "train --cluster a100_roce_fat_tree --devices 16 --tier roofline --stack llm-foundry "
      "--config " +
      config);
  const JsonView plan = JsonView(json, "train").at("plan");
  EXPECT_EQ(plan.at("sharding").string(), "parameters");
  EXPECT_EQ(plan.at("recompute").string(), "full");
  EXPECT_EQ(plan.at("micro_batch").integer(), 4);
  EXPECT_EQ(plan.at("micro_batches").integer(), 4);
}

TEST_F(TrainCommandFiles, a_stack_of_the_user_is_a_file) {
  const std::string stack = write("mine.json", R"({"format": 1, "name": "mine", "summary": "s", "source": "s",
    "extends": "llm-foundry", "constants": {"step_us": 9e6}})");
  const Json json = train_json(small_train + " --devices 8 --sharding parameters --stack " + stack);
  EXPECT_EQ(JsonView(json, "train").at("parts_seconds").at("step").number(), 9);
  const std::string wrong = write("wrong.json", R"({"format": 1, "name": "mine", "summary": "s", "source": "s",
    "constants": {"stepp_us": 9e6}})");
  const Outcome run = run_foretoken(small_train + " --devices 8 --stack " + wrong);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("wrong.json"), HasSubstr("constants.stepp_us"), HasSubstr("step_us")));
}

TEST_F(TrainCommandFiles, the_pipeline_is_drawn_and_written_for_other_tools) {
  const std::string trace = (folder_ / "trace.json").string(), chakra = (folder_ / "pipeline").string();
  const Outcome run = run_foretoken(small_train + " --devices 32 -pp 4 --global-batch-size 64 --timeline --trace " +
                                    trace + " --export-chakra " + chakra);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NO_THROW(parse_json(read_file(trace, 1 << 24), "trace"));
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_TRUE(fs::exists(chakra + "." + std::to_string(stage) + ".et")) << stage;
  }
}

constexpr std::string_view runs_header =
    "id,source,model,task,layers,hidden,heads,kv_heads,head_dim,ffn,gated,vocab,seq,experts,topk,shared_experts,moe_"
    "ffn,"
    "dense_layers,attn,gpu,gpus_per_node,n_gpus,tp,sp,cp,pp,vpp,dp,ep,zero,micro_batch,global_batch,dtype,recompute,"
    "iter_time_s,tflops_per_gpu,tflops_def,mfu_pct,tokens_per_s_per_gpu,primary,steps_n,step_cv,config_grade,notes\n";

TEST_F(TrainCommandFiles, a_page_has_the_pipeline_the_roofline_the_cost_and_how_far_to_trust_it) {
  const std::string line = small_train + " --devices 16 -tp 2 -pp 2 --global-batch-size 64 --html " + path("t.html");
  ASSERT_EQ(run_foretoken(line).status, 0);
  const std::string html = read_file(path("t.html"), 1U << 24U);
  for (const char* part :
       {"micro-batches through 2 stages", "Memory of the fullest device", "Roofline", "Energy and cost", "J per token",
        "How far to trust it", "Training run", "this device", "Collectives", "foretoken train --model Llama-3.1-8B"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  ASSERT_EQ(run_foretoken(line + " --train-tokens 1T").status, 0);
  EXPECT_THAT(read_file(path("t.html"), 1U << 24U), AllOf(HasSubstr(" MWh</td>"), HasSubstr(" USD</td>")));
}

TEST_F(TrainCommandFiles, validate_training_scores_a_table_of_runs_and_writes_every_row) {
  const std::string sizes = "Tiny-GPT,pretrain,8,2048,16,16,128,8192,0,32000,2048,0,0,0,0,8,mha,";
  const std::string plan = ",8,8,1,0,1,1,1,8,1,0,1,8,bf16,none,0.2,,,,,iter_time_s,,,A,\n";
  const std::string runs = write("runs.csv", std::string(runs_header) + "mine-1,mine," + sizes + "H100" + plan +
                                                 "mine-2,mine," + sizes + "unheard-of" + plan);
  const std::string out = (folder_ / "scored.csv").string();
  const Outcome run =
      run_foretoken("validate training --data " + runs + " --stack megatron-core-2024 --out " + out + " --json");
  EXPECT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "validate");
  EXPECT_EQ(JsonView(json, "validate").at("overall").at("n").integer(), 1);
  EXPECT_THAT(read_file(out, 1 << 20), HasSubstr("mine-1"));
  EXPECT_THAT(run_foretoken("validate training --data " + runs + " --stack megatron-core-2024").out,
              HasSubstr("unheard-of"));

  const std::string wrong =
      write("wrong.csv", std::string(runs_header) + "mine-1,mine," + sizes + "H100,8,8,x" + plan.substr(6));
  const Outcome refused = run_foretoken("validate training --data " + wrong);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("wrong.csv"), HasSubstr("row 1, column tp")));
}

const std::string small_loop =
    "rlhf --model Qwen3-8B --cluster h100_ib_rail --devices 16 --sharding parameters --global-batch-size 64 "
    "--tier roofline";

TEST(RlhfCommand, stages_add_up_and_pools_are_all_devices) {
  for (const std::string more : {"", " --placement split", " --placement split --one-step-behind", " --algorithm ppo",
                                 " --rule-rewards --placement split --rollout-devices 4"}) {
    const Json json = train_json(small_loop + more);
    const JsonView root(json, "rlhf");
    double sum = 0;
    int64_t devices = 0;
    for (const JsonView& part : root.at("parts").items()) {
      if (!part.at("hidden").boolean()) sum += part.at("seconds").number();
    }
    for (const JsonView& pool : root.at("pools").items()) devices += pool.at("devices").integer();
    EXPECT_NEAR(sum, root.at("seconds").number(), 1e-9 * sum) << more;
    EXPECT_EQ(devices, 16) << more;
    EXPECT_THAT(run_foretoken(small_loop + more).out, HasSubstr("generation")) << more;
  }
}

TEST(RlhfCommand, rules_cost_less_than_a_reward_model_and_a_critic_more_than_none) {
  const auto part_seconds = [](const std::string& line, const std::string& name) {
    const Json json = train_json(line);
    for (const JsonView& part : JsonView(json, "rlhf").at("parts").items()) {
      if (part.at("name").string() == name) return part.at("seconds").number();
    }
    return 0.0;
  };
  EXPECT_LT(part_seconds(small_loop + " --rule-rewards", "scoring"), part_seconds(small_loop, "scoring"));
  EXPECT_NEAR(part_seconds(small_loop + " --algorithm ppo --samples-per-prompt 16", "training"),
              2 * part_seconds(small_loop, "training"), 1e-9);
}

TEST(RlhfCommand, wrong_input_ends_with_status_2) {
  for (const char* more : {" --one-step-behind", " --placement split --rollout-devices 16", " --train-tokens 1T",
                           " --algorithm dpo", " --rollout-tensor-parallel-size 7"}) {
    const Outcome run = run_foretoken(small_loop + more);
    EXPECT_EQ(run.status, 2) << more << "\n" << run.out;
  }
}

TEST(RlhfCommand, models_that_do_not_fit_are_refused_as_train_does) {
  for (const char* line : {"rlhf --model Llama-3.1-405B --device h100_sxm --devices 1 --tier roofline",
                           "rlhf --model Llama-3.1-8B --device h100_sxm --devices 16 --tier roofline",
                           "rlhf --model Llama-3.1-70B --cluster h100_ib_rail --devices 64 --sharding parameters "
                           "--recompute-granularity full --placement split --tier roofline"}) {
    const Outcome run = run_foretoken(line);
    EXPECT_EQ(run.status, 3) << line;
    EXPECT_THAT(run.out + run.err, HasSubstr("Out of memory")) << line;
  }
  const Outcome wider = run_foretoken(
      "rlhf --model Llama-3.1-70B --cluster h100_ib_rail --devices 64 --sharding parameters --recompute-granularity "
      "full --placement split --rollout-tensor-parallel-size 4 --tier roofline");
  EXPECT_EQ(wider.status, 0) << wider.out << wider.err;
}

TEST(RlhfCommand, the_kv_cache_limits_answers_in_flight_and_answers_are_trained_at_their_length) {
  const auto number = [](const std::string& more, std::string_view field) {
    return train_json(small_loop + more).find(field)->number();
  };
  const std::string long_answers =
      " --recompute-granularity full --response-len 16000 --max-response-len 16000 --response-sigma 0";
  const Json json = train_json(small_loop + long_answers + " --max-num-seqs 1024");
  EXPECT_LT(json.find("memory")->find("generation")->find("sequences_at_once")->number(), 200);
  EXPECT_THAT(json.find("notes")->dump(0), HasSubstr("--max-num-seqs"));
  EXPECT_EQ(number(long_answers, "training_sequence_tokens"), 16512);
  EXPECT_THAT(run_foretoken(small_loop + " --response-len 20000").out, HasSubstr("--max-response-len 8192 cuts"));
}

TEST(RlhfCommand, options_without_effect_are_refused_and_errors_name_the_flag_that_was_given) {
  const auto error = [](const std::string& more) {
    const Outcome run = run_foretoken(small_loop + more);
    EXPECT_EQ(run.status, 2) << more;
    return run.err;
  };
  EXPECT_THAT(error(" --seq-length 4096"), AllOf(HasSubstr("--seq-length"), HasSubstr("--response-len")));
  EXPECT_THAT(error(" --rollout-devices 4"), HasSubstr("needs --placement split"));
  EXPECT_THAT(error(" --one-step-behind"), HasSubstr("needs --placement split"));
  EXPECT_THAT(error(" --rollout-tensor-parallel-size 3"), HasSubstr("--rollout-tensor-parallel-size: 3"));
  EXPECT_THAT(error(" --rollout-stack nonsense"), HasSubstr("--rollout-stack: nonsense"));
  EXPECT_THAT(error(" -tp 8 --placement split --rollout-devices 4"), HasSubstr("a multiple of 8 for training"));
}

}  // namespace foretoken::train_test
