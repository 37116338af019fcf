// Names of checkpoints as people type them: what runs, in which format, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::model_names_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ModelNames : public CommandTest {
 protected:
  // Few layouts, so that a search takes a moment.
  static Outcome plan(const std::string& flags) {
    return run_foretoken(
        "plan serve --slo ttft:100,tpot:9 -pp 1 --max-num-seqs 0 --max-num-batched-tokens 0 --no-disaggregate "
        "--dataset-name lognormal --random-input-len 256 --random-output-len 16 --num-prompts 100 "
        "--most-simulated 1 --finalists 1 " +
        flags);
  }
  static std::string model(const std::string& name) { return "--model " + name; }
  static std::string step_in_words(const std::string& flags) {
    const Outcome run = run_foretoken("step --batch 8 --context-len 512 " + flags);
    EXPECT_EQ(run.status, 0) << flags << "\n" << run.err;
    return in_one_line(run.out);
  }
  static double step_ms(const std::string& flags) {
    const Outcome run = run_foretoken("step --batch 8 --context-len 512 --json " + flags);
    EXPECT_EQ(run.status, 0) << flags << "\n" << run.err;
    const Json document = parse_json(run.out, "step");
    return JsonView(document, "step").at("seconds").at("value").number() * 1e3;
  }
};

// ---- what the launch line serves ----------------------------------------------------------------------------------

TEST_F(ModelNames, the_launch_line_serves_the_checkpoint_that_was_asked_for) {
  const std::string few = "--hardware h100_sxm:1 --engines vllm --quantizations config --kv-cache-dtype auto ";
  EXPECT_THAT(plan(few + "--model llama-3.1-8b-instruct").out,
              AllOf(HasSubstr("vllm serve meta-llama/Llama-3.1-8B-Instruct "),
                    HasSubstr("Serve meta-llama/Llama-3.1-8B-Instruct on")));
  EXPECT_THAT(plan(few + "--model RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic").out,
              AllOf(HasSubstr("vllm serve RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic "),
                    Not(HasSubstr("--quantization"))));
}

TEST_F(ModelNames, the_launch_line_asks_for_an_organization_that_nobody_named) {
  EXPECT_THAT(in_one_line(plan("--hardware h100_sxm:1 --engines vllm --kv-cache-dtype auto "
                               "--model Llama-3.1-8B-Instruct-AWQ")
                              .out),
              AllOf(HasSubstr("vllm serve Llama-3.1-8B-Instruct-AWQ "), HasSubstr("write the organization")));
}

TEST_F(ModelNames, the_launch_line_serves_the_folder_of_a_config) {
  const std::string file = write("mine/config.json",
                                 R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
                                     "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                                     "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"})");
  const Outcome run =
      plan("--hardware h100_sxm:1 --engines vllm --quantizations config --kv-cache-dtype auto --model " + file);
  EXPECT_THAT(run.out, HasSubstr("vllm serve " + path("mine") + " ")) << run.err;
}

// ---- formats in names ---------------------------------------------------------------------------------------------

TEST_F(ModelNames, a_format_in_the_name_is_the_format_of_the_weights) {
  struct Named {
    const char *name, *plain, *quantization;
  };
  for (const Named& one : {Named{"Llama-3.1-8B-Instruct-FP8", "Llama-3.1-8B", "fp8"},
                           Named{"RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "Llama-3.1-8B", "fp8"},
                           Named{"Qwen3-8B-FP8", "Qwen3-8B", "fp8_block"},
                           Named{"Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "Qwen3-30B-A3B", "fp8_block"},
                           Named{"Qwen2.5-7B-Instruct-AWQ", "Qwen2.5-7B", "int4_wo"},
                           Named{"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "Qwen2.5-7B", "int8_wo"},
                           Named{"RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "Llama-3.1-8B", "int8"},
                           Named{"unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "Llama-3.1-8B", "int4_wo"},
                           Named{"TheBloke/Llama-2-7B-Chat-GPTQ", "Llama-2-7b-hf", "int4_wo"}}) {
    const std::string device = " --device h100_sxm --kv-cache-dtype bf16 ";  // NVIDIA's ask for fp8
    EXPECT_DOUBLE_EQ(step_ms(model(one.name) + device),
                     step_ms(model(one.plain) + device + "--quantization " + one.quantization))
        << one.name;
    EXPECT_THAT(step_in_words(model(one.name) + device),
                HasSubstr(std::string("in the model's name sets the format ") + one.quantization));
  }
}

TEST_F(ModelNames, a_checkpoint_in_nvfp4_has_narrow_weights_and_says_so) {
  const std::string on_b200 = " --device b200_sxm ";
  EXPECT_DOUBLE_EQ(step_ms("--model Qwen3-32B-NVFP4 --kv-cache-dtype bf16" + on_b200),
                   step_ms("--model Qwen3-32B --quantization nvfp4" + on_b200));
  EXPECT_THAT(step_in_words("--model Qwen3-32B-NVFP4" + on_b200),
              AllOf(HasSubstr("nvidia/Qwen3-32B-NVFP4 on NVIDIA B200"), HasSubstr("sets the format nvfp4"),
                    HasSubstr("the checkpoint asks for an fp8 KV cache")));
  EXPECT_DOUBLE_EQ(step_ms("--model nvidia/DeepSeek-R1-FP4 --kv-cache-dtype bf16 -tp 8" + on_b200),
                   step_ms("--model DeepSeek-R1 --quantization nvfp4,attention=bf16 -tp 8" + on_b200));
  const Outcome served = run_foretoken(
      "serve --model nvidia/Llama-3.1-8B-Instruct-FP8 --device h100_sxm --num-prompts 4 --random-input-len 64 "
      "--random-output-len 8");
  EXPECT_THAT(in_one_line(served.out), HasSubstr("note: FP8 in the model's name sets the format fp8")) << served.err;
}

TEST_F(ModelNames, a_flag_that_contradicts_the_name_is_refused) {
  const std::string named = "step --model Qwen3-8B-FP8 --device h100_sxm --batch 8 ";
  expect_refused(run_foretoken(named + "--quantization int4_wo"), "fp8_block, the format in the name");
  expect_refused(run_foretoken("serve --model Qwen2.5-7B-Instruct-AWQ --device h100_sxm -q fp8"),
                 "int4_wo, the format in the name Qwen/Qwen2.5-7B-Instruct-AWQ");
  expect_refused(plan("--model Qwen3-8B-FP8 --hardware h100_sxm:1 --quantizations config,int4_wo"),
                 "fp8_block, the format in the name");
  EXPECT_EQ(run_foretoken(named + "--quantization fp8").out, run_foretoken(named).out);
}

TEST_F(ModelNames, a_format_that_is_not_simulated_is_refused_in_words) {
  for (const char* name : {"bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", "Meta-Llama-3.1-8B-Instruct-Q4_K_M",
                           "turboderp/Llama-3.1-8B-Instruct-exl2", "Llama-3.1-8B-Instruct-W4A4"}) {
    expect_refused(run_foretoken("step --device h100_sxm --batch 8 --model " + std::string(name)),
                   "a format that is simulated");
  }
}

TEST_F(ModelNames, amds_mxfp4_checkpoints_multiply_in_four_bits) {
  const Outcome step = run_foretoken(
      "step --device mi355x -tp 8 --batch 8 --phase decode --context-len 64 --model "
      "amd/Llama-3.1-405B-Instruct-MXFP4 --json");
  EXPECT_EQ(step.status, 0) << step.err;
  EXPECT_THAT(step.out, HasSubstr("w4a4_mxfp4"));
}

TEST_F(ModelNames, a_suggested_name_works_as_it_reads) {
  const Outcome wrong = run_foretoken("step --device b200_sxm --batch 8 --model Qwen3-32B-NVFP44");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean Qwen3-32B-NVFP4?"));
  EXPECT_THAT(step_in_words("--device b200_sxm --model Qwen3-32B-NVFP4"), HasSubstr("sets the format nvfp4"));
}

TEST_F(ModelNames, a_relative_by_its_name_has_the_shapes_of_the_one_that_is_listed) {
  EXPECT_DOUBLE_EQ(step_ms("--device h100_sxm --model unsloth/Llama-3.2-3B-Instruct"),
                   step_ms("--device h100_sxm --model Llama-3.2-3B"));
  EXPECT_THAT(step_in_words("--device h100_sxm --model Qwen3-4B-Instruct-2507"),
              HasSubstr("shapes are those of Qwen/Qwen3-4B"));
  EXPECT_EQ(run_foretoken("step --device h100_sxm --batch 8 --model someone/Llama-3.1-8B").status, 2);
}

TEST_F(ModelNames, validation_resolves_names_as_the_other_commands_do) {
  const std::string rows =
      write("rows.csv",
            "tier,gpu,model,engine,engine_version,weight_dtype,tp,mode,isl,osl,concurrency,num_requests,tpot_ms,"
            "tpot_stat\n"
            "A,H100-SXM-80GB,Qwen3-30B-A3B-FP8,vllm,0.19.0,fp8,1,agg,128,16,2,4,8,mean\n"
            "A,H100-SXM-80GB,RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8,vllm,0.19.0,fp8,1,agg,128,16,2,4,6,mean\n");
  const Outcome run = run_foretoken("validate serving --json --data " + rows);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("a known model")));
  const Json document = parse_json(run.out, "validation");
  EXPECT_EQ(JsonView(document, "validation").at("skipped").items().size(), 0U) << run.out;
}

// ---- checkpoints that are published quantized -----------------------------------------------------------------------

TEST_F(ModelNames, a_checkpoint_that_is_published_quantized_is_not_quantized_again) {
  const std::string few = "--hardware h200_sxm:1 --engines vllm --kv-cache-dtype auto ";
  const Outcome run = plan("--model gpt-oss-20b " + few + "--json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("vllm serve openai/gpt-oss-20b"), Not(HasSubstr("/fp8/")),
                             Not(HasSubstr("--quantization"))));
  const Outcome asked = plan("--model gpt-oss-20b --quantizations fp8 " + few + "--json");
  EXPECT_THAT(asked.out, HasSubstr("/fp8/")) << asked.err;
}

TEST_F(ModelNames, mxfp4_is_a_format_of_routed_experts) {
  EXPECT_DOUBLE_EQ(step_ms("--device h100_sxm --model gpt-oss-20b --quantization mxfp4"),
                   step_ms("--device h100_sxm --model gpt-oss-20b"));
}

// ---- formats and engines that a device does not have ----------------------------------------------------------------

TEST_F(ModelNames, fp4_on_a_device_without_it_is_refused_with_what_to_use_instead) {
  const std::string has = "a format that a100_sxm supports (fp32, tf32, bf16, fp16, int8), or int4_wo";
  expect_refused(run_foretoken("kernel gemm --device a100_sxm --m 64 --n 4096 --k 4096 --dtype fp4"), has);
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device t4 --batch 8 --quantization nvfp4"),
                 "a format that t4 supports");
  expect_refused(plan("--model Llama-3.1-8B --hardware a100_sxm:1 --quantizations fp4"), has);
  expect_refused(run_foretoken("kernel gemm --device a100_sxm --m 64 --n 4096 --k 4096 --dtype fp8"),
                 "or int8_wo (8-bit weights, multiplied in 16 bits)");
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device t4 --batch 8 --quantization fp8"),
                 "a format that t4 supports");
  const std::string rows = write("shapes.csv", "dtype,m,n,k\nbf16,64,4096,4096\nfp8,64,4096,4096\n");
  expect_refused(run_foretoken("kernel gemm --device a100_sxm --csv " + rows), "a100_sxm supports");
}

TEST_F(ModelNames, narrow_weights_are_multiplied_in_bf16_where_the_device_has_nothing_narrower) {
  EXPECT_DOUBLE_EQ(step_ms("--device a100_sxm --model Llama-3.1-8B-Instruct-FP8 --kv-cache-dtype bf16"),
                   step_ms("--device a100_sxm --model Llama-3.1-8B --quantization int8_wo"));
  EXPECT_THAT(step_in_words("--device a100_sxm --model Llama-3.1-8B-Instruct-FP8"),
              HasSubstr("a100_sxm does not multiply in fp8: engines keep the fp8 weights and multiply in bf16"));
  EXPECT_THAT(step_in_words("--device h100_sxm --model Qwen3-32B-NVFP4"), HasSubstr("does not multiply in fp4"));
  EXPECT_THAT(step_in_words("--device a100_sxm --model gpt-oss-20b"), Not(HasSubstr("does not multiply")));
}

TEST_F(ModelNames, nvfp4_by_flag_and_by_name_are_the_same_on_a_device_without_it) {
  const std::string on_h100 = "--device h100_sxm --model Llama-3.1-8B";
  EXPECT_DOUBLE_EQ(step_ms(on_h100 + " --quantization nvfp4"), step_ms(on_h100 + "-NVFP4 --kv-cache-dtype bf16"));
  // vLLM's Marlin runs NVFP4 weights from sm_75 on (marlin_utils_fp4.py).
  EXPECT_THAT(step_in_words("--device a100_sxm --model Llama-3.1-8B --quantization nvfp4"),
              HasSubstr("a100_sxm does not multiply in fp4: engines keep the nvfp4 weights and multiply in bf16"));
  EXPECT_THAT(step_in_words(on_h100 + " --quantization nvfp4"),
              HasSubstr("h100_sxm does not multiply in fp4: engines keep the nvfp4 weights and multiply in bf16"));
}

TEST_F(ModelNames, a_size_that_the_library_lacks_is_told_its_family_and_what_is_missing) {
  expect_refused(run_foretoken("models Qwen/Qwen2.5-57B-Instruct-AWQ"),
                 "The qwen2 family is supported, but this model's sizes are unknown: pass its config.json. Similar: "
                 "Qwen/Qwen2.5-72B");
}

TEST_F(ModelNames, an_engine_is_refused_on_devices_that_it_does_not_run_on) {
  const std::string instead =
      "an engine that supports this device: vllm, vllm-0.19, vllm-0.7, sglang (trtllm runs on NVIDIA GPUs since "
      "Ampere)";
  expect_refused(run_foretoken("serve --model Llama-3.1-8B --device mi300x --engine trtllm"), instead);
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device mi300x --batch 8 --stack trtllm"), instead);
  expect_refused(plan("--model Llama-3.1-8B --hardware mi300x:1 --engines trtllm"), instead);
  expect_refused(run_foretoken("serve --model Llama-3.1-8B --device tpu_v6e --engine trtllm"),
                 "an engine that supports this device: vllm, vllm-0.19, vllm-0.7 (");
  EXPECT_EQ(run_foretoken("step --model Llama-3.1-8B --device mi300x --batch 8 --stack sglang").status, 0);
}

TEST_F(ModelNames, a_plan_says_which_engines_it_did_not_try) {
  const Outcome run = run_foretoken(
      "plan serve --model Llama-3.1-8B --hardware mi300x:1 --engines vllm,trtllm --quantizations config "
      "--kv-cache-dtype auto --slo ttft:2000,tpot:200 -pp 1 --max-num-seqs 0 --max-num-batched-tokens 0 "
      "--no-disaggregate --num-prompts 50 --most-simulated 1 --finalists 1");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(in_one_line(run.out),
              AllOf(HasSubstr("trtllm was not tried on mi300x: trtllm runs on NVIDIA GPUs since Ampere only."),
                    Not(HasSubstr("trtllm-serve"))));
}

// ---- what people type -----------------------------------------------------------------------------------------------

TEST_F(ModelNames, hardware_and_prices_may_be_written_as_people_say_them) {
  const std::string rest =
      " --model Llama-3.1-8B --engines vllm --quantizations config --kv-cache-dtype auto -tp 2 --json";
  const Outcome run = plan("--hardware 2xH100 --price 'H100=$1.9' --budget-usd-hour '$50'" + rest);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, plan("--hardware h100_sxm:2 --price h100_sxm=1.9 --budget-usd-hour 50" + rest).out);
  expect_refused(plan("--hardware h100_sxm:" + rest), "or COUNTxDEVICE, as in 8xH100");
}

TEST_F(ModelNames, a_draft_that_is_not_known_is_told_what_to_give) {
  const std::string target = "serve --model Llama-3.1-8B --device h100_sxm --speculative-config ";
  const std::string refused =
      R"('{"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "num_speculative_tokens": 3,)"
      R"( "acceptance_rate": 0.6}')";
  expect_refused(run_foretoken(target + refused),
                 "no model (eagle3 then uses one layer like the target's as its draft)");
}

TEST_F(ModelNames, an_unknown_family_with_experts_is_not_told_to_be_llama) {
  const auto config = [&](const std::string& type) {
    return write("config.json", R"({"model_type": ")" + type + R"(", "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "vocab_size": 100000, "max_position_embeddings": 8192, "num_experts": 64, "num_experts_per_tok": 8})");
  };
  const Outcome unknown = run_foretoken("models " + config("newmoe"));
  expect_refused(unknown, "a family that reads experts, because the config has num_experts: mixtral");
  EXPECT_THAT(unknown.err, Not(HasSubstr("set model_type to llama")));
  expect_refused(run_foretoken("models " + config("llama")), "a family that reads experts");
}

}  // namespace foretoken::model_names_test
