// foretoken train, plan train, validate training and fit training: what flags and files say arrives, and what says
// nothing is refused.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"

namespace foretoken::train_flags_test {

class Train : public CommandTest {
 protected:
  static Outcome train(const std::string& more) {
    return run_foretoken("train --model Llama-3.1-8B --cluster h100_ib_rail --seq-length 2048 " + more);
  }

  static Json json_of(const Outcome& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "train");
  }
};

TEST_F(Train, flags_that_would_change_nothing_are_refused) {
  for (const auto& [flags, mentions] : {
           std::pair("--devices 8 --shard-ranks 4", "--shard-ranks: cannot be combined with --sharding none"),
           std::pair("--devices 8 --recompute-method block",
                     "--recompute-method: cannot be combined with --recompute-granularity none"),
           std::pair("--devices 8 --recompute-num-layers 1", "--recompute-num-layers"),
           std::pair("--devices 8 --recompute-granularity full --recompute-num-layers 2", "--recompute-method block"),
           std::pair("--devices 8 --recompute-granularity full --recompute-method block", "--recompute-num-layers"),
           std::pair("--devices 8 --optimizer-offload-fraction 0.5", "--optimizer-offload-fraction"),
           std::pair("--devices 8 --lora-target mlp", "--lora-target"),
           std::pair("--devices 8 --routing random", "a model without experts"),
           std::pair("--devices 8 --moe-expert-capacity-factor 1", "a model without experts"),
           std::pair("--devices 8 --cp-comm-type a2a", "--cp-comm-type"),
           std::pair("--devices 8 --use-distributed-optimizer --sharding none", "contradict"),
           std::pair("--devices 8 --data-parallel-sharding-strategy optim", "--use-megatron-fsdp"),
           std::pair("--devices 8 -tp 4 --expert-tensor-parallel-size 2", "--expert-tensor-parallel-size"),
           std::pair("--devices 8 --train-tokens 1B --gpu-price -0.5", "--gpu-price"),
           std::pair("--devices 8 -pp 2 --num-virtual-stages-per-pipeline-rank 2 "
                     "--num-layers-per-virtual-pipeline-stage 8",
                     "one of the two"),
       }) {
    expect_refused(train(flags), mentions);
  }
}

// Rules of these stacks read fields of operators, which differ from one family of models to the next.
TEST_F(Train, stacks_that_name_their_kernels_run_models_of_all_families) {
  for (const char* stack : {"transformers", "transformers-compile", "transformers-unfused", "torchtitan",
                            "torchtitan-eager", "nanogpt", "nanogpt-eager", "llm.c", "deepspeed"}) {
    for (const char* model : {"Llama-3.1-8B", "gpt2", "Qwen3-8B", "Qwen3-30B-A3B", "gemma-3-4b", "gpt-oss-20b"}) {
      for (const char* tuning : {"", " --lora-rank 16", " --lora-rank 16 --optimizer adam-bf16-weights"}) {
        const std::string line = std::string("train --device h100_sxm --devices 8 --seq-length 1024 ") +
                                 "--global-batch-size 8 --recompute-granularity full --recompute-method uniform " +
                                 "--recompute-num-layers 1 --json --stack " + stack + " --model " + model + tuning;
        const Outcome run = run_foretoken(line);
        EXPECT_TRUE(run.status == 0 || run.status == 3) << line << "\n" << run.err;  // 3: does not fit in memory
        EXPECT_EQ(run.err.find("expected a name that the operator has"), std::string::npos) << run.err;
      }
    }
  }
}

TEST_F(Train, files_say_whether_gradients_are_clipped) {
  const auto seconds = [&](const std::string& norm) {
    const std::string file = write("trainer.yaml",
                                   "model_name_or_path: meta-llama/Llama-3.2-1B\nper_device_train_batch_size: 1\n"
                                   "max_seq_length: 1024\nbf16: true\n" +
                                       norm);
    return json_of(run_foretoken("train --from @" + file + " --device h100_sxm --devices 1 --json"))
        .find("seconds")
        ->find("value")
        ->number();
  };
  EXPECT_LT(seconds("max_grad_norm: 0\n"), seconds(""));
  EXPECT_EQ(seconds("max_grad_norm: 1.0\n"), seconds(""));
}

TEST_F(Train, devices_that_replicas_do_not_fill_are_refused) {
  expect_refused(train("--devices 12 -tp 8"), "a multiple of 8 (8 tensor x 1 context x 1 pipeline ranks), such as 8");
  expect_refused(train("--devices 12 -tp 7"), "--tensor-model-parallel-size = 7");
}

TEST_F(Train, sizes_beyond_all_bounds_are_refused) {
  expect_refused(train("--devices 8 -tp 1000000000 -pp 1000000000 -cp 1000000000"), "from 1 to 8192");
}

TEST_F(Train, what_a_search_prints_is_the_plan_it_found) {
  const std::string job = " --model Mixtral-8x7B-v0.1 --cluster h100_ib_rail --devices 16 --json ";
  const Json search = json_of(run_foretoken("plan train --global-batch-size 32 -ep 8 --best 1" + job));
  const Json again = json_of(run_foretoken("train" + job + search.find("megatron_flags")->string()));
  EXPECT_EQ(again.find("plan")->dump(0), search.find("fastest")->find("plan")->dump(0));
}

TEST_F(Train, flags_of_megatron_mean_what_ours_do) {
  const Json plan = json_of(
      train("--devices 8 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads --recompute-granularity "
            "full --recompute-method uniform --recompute-num-layers 1 --cp-comm-type p2p -cp 2 --json"));
  EXPECT_EQ(plan.find("plan")->find("sharding")->string(), "gradients");
  EXPECT_EQ(plan.find("plan")->find("context_exchange")->string(), "ring");
  EXPECT_EQ(plan.find("plan")->find("recompute_layers")->integer(), 0);
}

TEST_F(Train, adapters_are_counted_by_their_own_convention_unless_another_is_given) {
  const auto convention = [](const std::string& more) {
    return json_of(train("--devices 8 --sharding optimizer --json " + more))
        .find("flops")
        ->find("convention")
        ->string();
  };
  EXPECT_EQ(convention(""), "model-3x-causal-half");
  EXPECT_EQ(convention("--lora-rank 16"), "lora-2x-causal-half");
  EXPECT_EQ(convention("--lora-rank 16 --flops executed"), "executed");
}

TEST_F(Train, the_report_says_what_is_not_usual) {
  const Outcome run = train(
      "--devices 8 --sharding parameters --shard-ranks 4 --recompute-granularity full --recompute-method block "
      "--recompute-num-layers 4 --optimizer adam-8bit --optimizer-cpu-offload --packed-length 512 -cp 2");
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string text = in_one_line(run.out);
  for (const char* part :
       {"context 2 (ring)", "1 micro-batch of 1", "parameters over 4 ranks", "full, 4 layers of each chunk",
        "100% of the optimizer state in host memory", "documents of 512 tokens packed", "bytes of optimizer state"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << run.out;
  }
  EXPECT_EQ(in_one_line(train("--devices 8").out).find("also "), std::string::npos);
}

TEST_F(Train, a_short_run_is_told_in_hours) {
  EXPECT_NE(train("--devices 8 --train-tokens 100M").out.find(" hours (90% interval"), std::string::npos);
}

TEST_F(Train, a_run_without_a_list_price_names_the_flag_that_gives_one) {
  const std::string job =
      "train --model Llama-3.2-1B --device rtx_6000_ada --devices 8 --seq-length 2048 --train-tokens 1B ";
  const Outcome without = run_foretoken(job);
  ASSERT_EQ(without.status, 0) << without.err;
  EXPECT_NE(in_one_line(without.out).find("no list price"), std::string::npos) << without.out;
  EXPECT_NE(without.out.find("--gpu-price"), std::string::npos) << without.out;
  EXPECT_EQ(in_one_line(run_foretoken(job + "--gpu-price 1").out).find("no list price"), std::string::npos);
}

TEST_F(Train, cards_in_several_boxes_are_on_the_cluster_that_steps_assume) {
  const std::string job =
      " --model Llama-3.2-1B --seq-length 2048 --global-batch-size 64 --device rtx_4090 --devices 16";
  for (const char* command : {"train", "plan train --best 1"}) {
    const Outcome run = run_foretoken(command + job);
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_NE(in_one_line(run.out).find("16 ranks span 2 nodes of 8 GPUs"), std::string::npos) << run.out;
    EXPECT_NE(in_one_line(run.out).find("Give --cluster to change this"), std::string::npos) << run.out;
  }
}

TEST_F(Train, each_pool_says_its_own_gpus_and_how_to_name_its_network) {
  const Outcome run = run_foretoken(
      "train --model Llama-3.1-8B --pool h100_sxm:16 --pool a100_sxm:32 --sharding parameters --global-batch-size 96");
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string text = in_one_line(run.out);
  EXPECT_NE(text.find("16 ranks span 2 nodes of 8 GPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("32 ranks span 4 nodes of 8 GPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("Give --pool the name of a cluster"), std::string::npos) << text;
  EXPECT_EQ(text.find("48 ranks"), std::string::npos) << text;
}

TEST_F(Train, sequences_are_no_longer_than_the_model_has_places_for_unless_asked_for) {
  const std::string job = "train --model gpt2 --device h100_sxm --devices 8 ";
  const Outcome usual = run_foretoken(job);
  ASSERT_EQ(usual.status, 0) << usual.err;
  EXPECT_NE(in_one_line(usual.out).find("a step of 8 x 1024 tokens"), std::string::npos) << usual.out;
  EXPECT_NE(in_one_line(usual.out).find("tokens, so 1024 tokens are assumed (--seq-length)"), std::string::npos)
      << usual.out;
  const Outcome longer = run_foretoken(job + "--seq-length 2048");
  EXPECT_NE(in_one_line(longer.out).find("a step of 8 x 2048 tokens"), std::string::npos) << longer.out;
  EXPECT_NE(in_one_line(longer.out).find("sequences of up to 1024 tokens"), std::string::npos) << longer.out;
  EXPECT_EQ(in_one_line(run_foretoken(job + "--seq-length 1024").out).find("sequences of up to"), std::string::npos);
}

TEST_F(Train, a_schedule_that_the_software_does_not_run_is_named) {
  const std::string job = "--devices 16 --device h100_sxm -pp 4 --global-batch-size 32 --pipeline-schedule ";
  const auto notes = [&](const std::string& more) {
    const Outcome run = run_foretoken("train --model Llama-3.1-8B --seq-length 2048 " + job + more);
    EXPECT_EQ(run.status, 0) << run.err;
    return in_one_line(run.out);
  };
  EXPECT_NE(notes("zb-h1").find("does not run the schedule zb-h1"), std::string::npos);
  EXPECT_EQ(notes("zb-v --stack torchtitan --num-virtual-stages-per-pipeline-rank 2").find("does not run the schedule"),
            std::string::npos);
  EXPECT_EQ(notes("1f1b").find("does not run the schedule"), std::string::npos);
}

TEST_F(Train, what_is_computed_again_counts_among_the_flops_of_the_hardware) {
  const auto share_of = [&](const std::string& recompute) {
    const Json answer = json_of(train("--devices 8 --sharding parameters --json " + recompute));
    const Json* use = answer.find("flops");
    EXPECT_NE(use, nullptr) << answer.dump(0);
    return use->find("hfu")->number() / use->find("mfu")->number();
  };
  const double none = share_of(""), mlp = share_of("--recompute-granularity selective --recompute-modules mlp");
  EXPECT_GT(mlp, 1.1 * none);
  EXPECT_LT(mlp, share_of("--recompute-granularity full"));
}

TEST_F(Train, a_search_tries_what_the_stack_can_shard) {
  const std::string job =
      "plan train --model Llama-3.1-8B --device h100_sxm --devices 16 --seq-length 8192 "
      "--global-batch-size 64 --stack torchtitan ";
  const Json search = json_of(run_foretoken(job + "--json"));
  for (const Json& one : search.find("best")->items()) {
    const std::string& sharding = one.find("plan")->find("sharding")->string();
    EXPECT_TRUE(sharding == "none" || sharding == "parameters") << sharding;
  }
  EXPECT_EQ(search.find("megatron_flags"), nullptr);
  EXPECT_EQ(run_foretoken(job).out.find("Megatron"), std::string::npos);
}

TEST_F(Train, a_file_of_deepspeed_does_not_say_what_is_recomputed) {
  const std::string file = "--devices 8 --config " + write("zero.json", R"({"train_batch_size": 64,
      "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 5e7}, "gradient_clipping": 1.0})");
  const std::string text = in_one_line(train(file).out);
  EXPECT_NE(text.find("does not say what is recomputed"), std::string::npos) << text;
  EXPECT_EQ(text.find("unknown keys"), std::string::npos) << text;
  EXPECT_EQ(in_one_line(train(file + " --recompute-granularity full").out).find("does not say what is recomputed"),
            std::string::npos);
}

TEST_F(Train, a_timeline_is_in_the_json_too) {
  const Json json = json_of(train("--devices 8 -pp 4 --global-batch-size 16 --timeline --json"));
  EXPECT_EQ(json.find("timeline")->find("micro_batches")->integer(), 8);
  EXPECT_EQ(json.find("timeline")->find("tasks")->items().size(), 4U * 8U * 2U);
}

TEST_F(Train, a_flag_beats_the_file) {
  const std::string file = write("zero.json", R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization":
      {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}},
      "activation_checkpointing": {"cpu_checkpointing": true}})");
  const auto formats = [&](const std::string& more) {
    return json_of(train("--devices 8 --json --config " + file + " " + more));
  };
  const Json as_said = formats("");
  EXPECT_EQ(as_said.find("formats")->find("offloaded_optimizer")->number(), 1);
  EXPECT_EQ(as_said.find("formats")->find("offloaded_activations")->number(), 1);
  EXPECT_EQ(as_said.find("formats")->find("offloaded_parameters")->number(), 1);
  EXPECT_EQ(as_said.find("stack")->string(), "deepspeed");
  const Json without = formats("--no-optimizer-cpu-offload --activation-offload-fraction 0");
  EXPECT_EQ(without.find("formats")->find("offloaded_optimizer")->number(), 0);
  EXPECT_EQ(without.find("formats")->find("offloaded_activations")->number(), 0);
}

TEST_F(Train, a_file_without_all_sizes_of_a_model_says_which_are_missing) {
  const std::string file = write("run.sh", "--num-layers 32 --hidden-size 4096 --num-attention-heads 32\n");
  expect_refused(run_foretoken({"train", "--config", file, "--cluster", "h100_ib_rail", "--devices", "8"}),
                 "its vocabulary, sequence length are missing");
}

TEST_F(Train, chunks_by_their_layers_count_embedding_and_loss) {
  const std::string layout = "--devices 16 -pp 2 --global-batch-size 16 --num-layers-per-virtual-pipeline-stage ";
  EXPECT_EQ(json_of(train(layout + "8 --json")).find("plan")->find("virtual_stages")->integer(), 2);
  expect_refused(train(layout + "5"), "a divisor of the 16 layers of a pipeline rank");
  expect_refused(train(layout + "8 --account-for-loss-in-pipeline-split"), "divisible by 2 pipeline ranks");
}

TEST_F(Train, a_search_honours_a_schedule_and_says_what_megatron_lacks) {
  const Outcome run = run_foretoken(
      "plan train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 -pp 2 --global-batch-size 32 --schedule "
      "zb-h1 --best 1");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("Megatron-LM has no schedule like zb-h1"), std::string::npos) << run.out;
}

TEST_F(Train, a_search_prints_the_notes_of_a_file) {
  const std::string file = write("run.sh", "--global-batch-size 32 --no-such-flag-of-ours 3\n");
  const Outcome run = run_foretoken({"plan", "train", "--model", "Llama-3.1-8B", "--cluster", "h100_ib_rail",
                                     "--devices", "8", "--config", file, "--best", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(in_one_line(run.out).find("unknown keys, ignored: no-such-flag-of-ours (line 1"), std::string::npos)
      << run.out;
}

TEST_F(Train, a_file_of_axolotl_is_a_whole_question) {
  const std::string file = write("lora.yaml", R"(base_model: NousResearch/Meta-Llama-3.1-8B
adapter: qlora
lora_r: 32
lora_target_modules: [q_proj, v_proj]
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
gradient_checkpointing: true
flash_attention: true
optimizer: paged_adamw_8bit
bf16: auto
learning_rate: 0.0002
deepspeed: deepspeed_configs/zero3_bf16.json
frobnicate: 3
)");
  const Outcome run = run_foretoken({"train", "--from", file, "--cluster", "hgx_h100", "--devices", "8"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string text = in_one_line(run.out);
  for (const char* part :
       {"Llama-3.1-8B", "a step of 64 x 2048 tokens", "LoRA of rank 32", "recompute full", "sharding parameters",
        "0.516 bytes per weight", "deepspeed", "no effect on time or memory: flash_attention, learning_rate",
        "unknown keys, ignored: frobnicate (line 15)", "--packed-length"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << run.out;
  }
}

TEST_F(Train, torchtitan_shards_parameters_unless_told_otherwise) {
  const std::string question = "train --model Llama-3.1-8B --device h100_sxm --devices 8 --stack torchtitan";
  const Outcome usual = run_foretoken(question);
  ASSERT_EQ(usual.status, 0) << usual.err;
  EXPECT_NE(in_one_line(usual.out).find("sharding parameters"), std::string::npos) << usual.out;
  EXPECT_NE(in_one_line(usual.out).find("change this with --sharding"), std::string::npos) << usual.out;
  const Outcome whole = run_foretoken(question + " --sharding none --lora-rank 16");
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(in_one_line(whole.out).find("sharding parameters"), std::string::npos) << whole.out;
}

TEST_F(Train, a_searched_plan_is_written_for_a_framework_and_read_back) {
  const std::string file = write("plan.yaml", "");
  const std::string start =
      "plan train --model Llama-3.1-8B --device h100_sxm --devices 8 --global-batch-size 64 "
      "--seq-length 4096 --lora-rank 16 --stack transformers --best 3 ";
  const Outcome run = run_foretoken(start + "--launch axolotl --launch-out " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  const Outcome again = run_foretoken("train --from " + file + " --device h100_sxm --devices 8");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_NE(in_one_line(again.out).find("a step of 64 x 4096 tokens"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("LoRA of rank 16"), std::string::npos) << again.out;
  expect_refused(run_foretoken(start + "--launch torchtitan"), "torchtitan trains no adapters");
}

TEST_F(Train, a_plan_for_a_framework_is_timed_with_its_software_and_has_what_it_can_run) {
  const Outcome run = run_foretoken(
      "plan train --model Qwen/Qwen3-30B-A3B --device h200_sxm --devices 8 --global-batch-size 64 --seq-length 4096 "
      "--lora-rank 16 --best 1 --launch axolotl");
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string text = in_one_line(run.out);
  EXPECT_NE(text.find("predicted with the software stack transformers"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\ndatasets:"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\noutput_dir:"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("for Megatron-LM"), std::string::npos) << run.out;
}

TEST_F(Train, errors_about_a_file_name_its_keys_unless_a_flag_overrides_them) {
  const std::string file = write("x.toml",
                                 "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 4096\n"
                                 "[parallelism]\ntensor_parallel_degree = 3\n");
  const std::string start = "train --from " + file + " --device h100_sxm --devices 24 ";
  expect_refused(run_foretoken(start), "parallelism.tensor_parallel_degree of");
  expect_refused(run_foretoken(start + "--tensor-model-parallel-size 6"), "--tensor-model-parallel-size = 6");
}

TEST_F(Train, gpus_of_two_kinds_share_a_job_by_their_speed) {
  const std::string start = "train --model Llama-3.1-8B --pool h100_sxm:8 --pool a100_sxm:8 --seq-length 4096 ";
  const Outcome data = run_foretoken(start + "--sharding parameters --global-batch-size 128 --json");
  ASSERT_EQ(data.status, 0) << data.err;
  const Json document = parse_json(data.out, "train");
  const JsonView view(document, "train");
  EXPECT_GT(view.at("pools").items()[0].at("micro_batches").integer(),
            view.at("pools").items()[1].at("micro_batches").integer());
  EXPECT_LT(view.at("seconds").at("value").number(), view.at("even_seconds").number());
  const Outcome pipeline = run_foretoken(start +
                                         "--pool-axis pipeline -tp 4 -pp 4 --sequence-parallel --global-batch-size 32 "
                                         "--use-distributed-optimizer");
  ASSERT_EQ(pipeline.status, 0) << pipeline.err;
  EXPECT_NE(pipeline.out.find("stages 2 to 3"), std::string::npos) << pipeline.out;
  expect_refused(run_foretoken(start + "--cluster h100_ib_rail"), "--pool");
  expect_refused(run_foretoken("train --model Llama-3.1-8B --pool h100_sxm"), "--pool");
  expect_refused(run_foretoken("train --model Llama-3.1-8B --device h100_sxm --devices 8 --pool-axis data"), "--pool");
}

TEST_F(Train, one_pool_is_a_device_with_its_number) {
  const std::string more = " --seq-length 4096 --sharding parameters --global-batch-size 64";
  const Outcome pool = run_foretoken("train --model Llama-3.1-8B --pool h100_sxm:8" + more);
  ASSERT_EQ(pool.status, 0) << pool.err;
  EXPECT_EQ(pool.out, run_foretoken("train --model Llama-3.1-8B --device h100_sxm --devices 8" + more).out);
  expect_refused(run_foretoken("train --model Llama-3.1-8B --pool h100_sxm:8 --devices 8"), "--pool");
  expect_refused(run_foretoken("train --model Llama-3.1-8B --pool h100_sxm:8 --pool-axis data"), "--pool");
}

TEST_F(Train, an_unknown_machine_is_named_by_its_flag) {
  const std::string start = "train --model Llama-3.1-8B ";
  expect_refused(run_foretoken(start + "--pool banana:8"), "--pool: banana");
  expect_refused(run_foretoken(start + "--pool h100_sxm:8 --pool banana:8"), "--pool: banana");
  expect_refused(run_foretoken(start + "--device banana --devices 8"), "--device: banana");
  expect_refused(run_foretoken("plan " + start + "--hardware h100_sxm:8"), "--device with --devices");
}

TEST_F(Train, dispatchers_of_tokens_differ_in_what_they_send) {
  const std::string start =
      "train --model Qwen3-30B-A3B --cluster h100_ib_rail --devices 16 --expert-model-parallel-size 8 "
      "--use-distributed-optimizer --recompute-granularity full --json --moe-token-dispatcher ";
  const auto seconds = [&](const char* dispatcher) {
    return json_of(run_foretoken(start + dispatcher)).find("seconds")->find("value")->number();
  };
  EXPECT_LT(seconds("deepep"), seconds("alltoall"));
  EXPECT_LT(seconds("hybridep"), seconds("alltoall"));
  expect_refused(run_foretoken("train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 "
                               "--moe-token-dispatcher deepep"),
                 "a model without experts");
}

TEST_F(Train, a_search_says_why_it_refuses_a_flag) {
  expect_refused(run_foretoken("plan train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 "
                               "--global-batch-size 32 --shard-ranks 4"),
                 "it shards over all replicas");
  expect_refused(run_foretoken("plan train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 "
                               "--global-batch-size 32 --recompute-modules layernorm"),
                 "it chooses the modules itself");
}

TEST_F(Train, a_search_names_sizes_as_the_file_does_that_fixed_them) {
  const std::string file = write("titan.toml",
                                 "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
                                 "[training]\nseq_len = 4096\nglobal_batch_size = 32\n");
  const std::string search = "plan train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 -tp 3 ";
  expect_refused(run_foretoken(search + "--from " + file),
                 "global_batch_size of " + file + " 32, --tensor-model-parallel-size 3");
  expect_refused(run_foretoken(search + "--global-batch-size 32"),
                 "--global-batch-size 32, --tensor-model-parallel-size 3");
}

TEST_F(Train, a_search_for_another_launcher_does_not_name_megatron_where_nothing_fits) {
  const std::string search =
      "plan train --model Llama-3.1-405B --cluster h100_ib_rail --devices 8 --global-batch-size 8 ";
  EXPECT_THAT(run_foretoken(search).out, testing::HasSubstr("least memory, for Megatron-LM:"));
  EXPECT_THAT(run_foretoken(search + "--launch torchtitan").out, testing::Not(testing::HasSubstr("Megatron-LM")));
}

TEST_F(Train, software_without_a_stack_of_its_own_is_answered_with_the_one_that_stands_for_it) {
  const std::string command = "train --model Llama-3.1-8B --device h100_sxm --devices 8 --stack ";
  expect_refused(run_foretoken(command + "Axolotl"), "did you mean transformers?");
  expect_refused(run_foretoken(command + "nemo"), "did you mean megatron-bridge-26.08?");
}

const char* const no_runs = "id,source,model,gpu\n";

TEST_F(Train, validation_refuses_names_that_there_are_not) {
  const std::string file = write("runs.csv", "id,source,model,gpu\n1,mosaic-foundry,mpt-7b,h100\n");
  const std::string command = "validate training --data " + file;
  expect_refused(run_foretoken(command + " --stack llm-foundri"), "did you mean llm-foundry?");
  expect_refused(run_foretoken(command + " --sources mosaik-foundry"), "did you mean mosaic-foundry?");
  expect_refused(run_foretoken(command + " --models mpt-8b"), "did you mean mpt-7b?");
  expect_refused(run_foretoken(command + " --gpus h200"), "did you mean h100?");
}

TEST_F(Train, a_fit_refuses_what_it_cannot_write_before_it_starts) {
  const std::string file = write("runs.csv", no_runs);
  expect_refused(run_foretoken({"fit", "training", "--data", file, "--out", file}), "a writable folder");
  expect_refused(
      run_foretoken({"fit", "training", "--data", file, "--out", folder_.string(), "--stacks", "llm-fondry"}),
      "did you mean llm-foundry?");
}

TEST_F(Train, modules_and_layouts_are_those_of_megatron) {
  const Json modules = json_of(train("--devices 8 --sharding parameters --recompute-modules layernorm mlp --json"));
  EXPECT_EQ(modules.find("plan")->find("recompute")->string(), "selective");
  EXPECT_EQ(modules.find("plan")->find("recompute_modules")->string(), "layernorm, mlp");
  expect_refused(train("--devices 8 --recompute-modules layernrom"), "layernorm");
  expect_refused(train("--devices 8 --recompute-granularity full --recompute-modules mlp"), "selective");
  const Json layout =
      json_of(train("--devices 8 -pp 4 --use-distributed-optimizer --micro-batch-size 1 --global-batch-size 16 "
                    "--pipeline-model-parallel-layout 'Et*6|(t*9|)*2t*8L' --json"));
  EXPECT_EQ(layout.find("plan")->find("layout")->string(), "Et*6|t*9|t*9|t*8L");
  expect_refused(train("--devices 8 -pp 4 --pipeline-model-parallel-layout Et*6|tL"), "chunks");
  expect_refused(train("--devices 8 -pp 2 --pipeline-model-parallel-layout Et*6x"), "character 5");
}

TEST_F(Train, a_box_is_named_by_its_device_or_its_node) {
  const std::string job = "train --model Llama-3.1-8B --seq-length 2048 --sharding parameters --json ";
  const Json box = parse_json(run_foretoken(job + "--device rtx_4090 --devices 4").out, "train");
  EXPECT_EQ(box.find("device")->string(), "rtx_4090");
  EXPECT_EQ(box.find("plan")->find("data")->integer(), 4);
  const Json node = json_of(run_foretoken(job + "--cluster hgx_a100"));
  EXPECT_EQ(node.find("plan")->find("data")->integer(), 8);
  expect_refused(run_foretoken(job + "--devices 4"), "--device");
}

TEST_F(Train, a_model_that_cannot_fit_is_refused_first) {
  const Outcome run = run_foretoken("train --model Llama-3.1-405B --cluster h100_ib_rail --devices 8 -tp 8");
  EXPECT_EQ(run.status, 3);
  EXPECT_TRUE(run.out.starts_with("Out of memory: ")) << run.out;
}

TEST_F(Train, gradient_accumulation_is_an_alternative_to_the_batch) {
  const Json steps =
      json_of(train("--devices 8 --sharding parameters --micro-batch-size 2 --gradient-accumulation-steps 4 --json"));
  EXPECT_EQ(steps.find("plan")->find("global_batch")->integer(), 64);
  expect_refused(train("--devices 8 --gradient-accumulation-steps 4 --global-batch-size 64"), "one of the two");
}

TEST_F(CommandTest, a_fit_takes_no_date_that_cannot_be_read_again) {
  const std::string asked = "--data none.csv --out " + path("out") + " --date ";
  for (const char* date : {"today", "2026-11", "2026-13-01"}) {
    expect_refused(run_foretoken("fit training " + asked + date), "a date such as 2026-11-17");
    expect_refused(run_foretoken("fit kernels --source us " + asked + date), "a date such as 2026-11-17");
  }
  expect_refused(run_foretoken("fit training " + asked + "2026-11-17"), "none.csv");
}

}  // namespace foretoken::train_flags_test
