// Many adapters of one model, and many models on one device, from the command line.
#include <gtest/gtest.h>

#include "base/json.h"
#include "run.h"

namespace foretoken::serve_sharing_test {

Outcome serve(const std::string& flags, const std::string& device = "h100_sxm") {
  return run_foretoken("serve --model Llama-3.1-8B --device " + device + " --no-intervals --max-model-len 8192 " +
                       flags);
}

Json answer(const std::string& flags, const std::string& device = "h100_sxm") {
  const Outcome run = serve(flags + " --json", device);
  EXPECT_EQ(run.status, 0) << run.err;
  return parse_json(run.out, "answer");
}

void expect_refused(const std::string& flags, const std::string& mentions, const std::string& device = "h100_sxm") {
  const Outcome run = serve(flags, device);
  EXPECT_EQ(run.status, 2) << flags << "\n" << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find(mentions), std::string::npos) << "should mention: " << mentions << "\n" << run.err;
}

const std::string load = "--request-rate 8 --num-prompts 60 --random-output-len 32 ";
const std::string two = "--colocate model=Llama-3.1-8B,load-share=3 --colocate model=Qwen3-8B,load-share=1 ";

TEST(ServeAdapters, cost_time_and_memory_and_are_counted) {
  const Json plain = answer(load), with = answer(load + "--enable-lora --max-loras 8 --num-adapters 20");
  EXPECT_EQ(plain.find("lora"), nullptr);
  EXPECT_GT(with.find("mean_tpot_ms")->number(), plain.find("mean_tpot_ms")->number());
  EXPECT_LT(with.find("kv_blocks")->integer(), plain.find("kv_blocks")->integer());
  const Json& lora = *with.find("lora");
  EXPECT_LE(lora.find("most_adapters")->integer(), 8);
  EXPECT_GE(lora.find("loads")->integer(), 20);
  EXPECT_EQ(lora.find("slot_bytes")->number(), 41'943'040 * 2.0);
  EXPECT_NE(serve(load + "--enable-lora --num-adapters 1").out.find("Adapters in a step"), std::string::npos);
}

TEST(ServeAdapters, wrong_flags_are_refused) {
  expect_refused("--max-loras 4", "needs --enable-lora");
  expect_refused("--num-adapters 4", "needs --enable-lora");
  expect_refused("--enable-lora", "--num-adapters");
  expect_refused("--enable-lora --num-adapters 4 --max-lora-rank 20", "did you mean 32?");
  expect_refused("--enable-lora --num-adapters 4 --lora-rank 64", "at most --max-lora-rank 16");
  expect_refused("--enable-lora --num-adapters 4 --max-loras 8 --max-cpu-loras 4", "at least --max-loras 8");
  expect_refused("--enable-lora --num-adapters 4 --lora-target-modules atention", "did you mean attention?");
  expect_refused("--enable-lora --num-adapters 4 --engine sglang", "--scheduler sglang");
  expect_refused("--enable-lora --num-adapters 4 --adapter-zipf-exponent 2", "--adapter-distribution uniform");
  expect_refused("--enable-lora --num-adapters 4 --prefill-pool count=1 --decode-pool count=1", "--prefill-pool");
  expect_refused("--enable-lora --num-adapters 4 --max-loras 2000", "enough memory left");
}

TEST(ServeColocated, every_way_of_sharing_serves_both_models_in_their_shares) {
  for (const std::string sharing : {"time_slicing", "mps", "swap"}) {
    const Json json = answer(load + two + "--gpu-sharing " + sharing);
    EXPECT_EQ(json.find("completed")->integer(), 60);
    EXPECT_EQ(json.find("devices")->integer(), 1);
    const std::vector<Json>& engines = json.find("colocation")->find("engines")->items();
    ASSERT_EQ(engines.size(), 2u);
    const int64_t first = engines[0].find("completed")->integer();
    EXPECT_EQ(first + engines[1].find("completed")->integer(), 60);
    EXPECT_NEAR(static_cast<double>(first), 45, 10);
    EXPECT_EQ(engines[1].find("model")->string(), "Qwen/Qwen3-8B");
  }
}

TEST(ServeColocated, a_model_alone_on_a_shared_device_is_the_plain_run) {
  const std::string flags = load + "--gpu-memory-utilization 0.9 ";
  const Json plain = answer(flags);
  for (const std::string sharing : {"time_slicing", "mps", "swap"}) {
    const Json alone = answer(flags + "--colocate load-share=1 --gpu-sharing " + sharing);
    for (const char* key : {"mean_ttft_ms", "p99_tpot_ms", "mean_itl_ms", "duration"}) {
      EXPECT_DOUBLE_EQ(alone.find(key)->number(), plain.find(key)->number()) << sharing << " " << key;
    }
  }
}

TEST(ServeColocated, mig_profiles_are_those_of_the_device) {
  const std::string quarters = "rtx_pro_6000_server";
  expect_refused("--colocate mig=1g --colocate mig=1g --gpu-sharing mig", "a GPU with MIG", "l40s");
  expect_refused("--colocate mig=3g --colocate mig=1g --gpu-sharing mig", "one of 1g, 2g, 4g", quarters);
  expect_refused("--colocate mig=4g --colocate mig=1g --gpu-sharing mig", "parts that fit on one GPU together",
                 quarters);
  expect_refused("--colocate mig=3g --colocate mig=3g --gpu-sharing mps", "--gpu-sharing mig");
  const Json json = answer(load + "--colocate mig=2g --colocate mig=2g --gpu-sharing mig", quarters);
  EXPECT_EQ(json.find("colocation")->find("engines")->items().size(), 2u);
}

TEST(ServeColocated, wrong_flags_are_refused) {
  expect_refused("--gpu-sharing mps", "needs --colocate");
  expect_refused(two + "--replicas 2", "--colocate");
  expect_refused(two + "--gpu-sharing mps --switch-time 5", "--gpu-sharing mps");
  expect_refused(two + "--gpu-sharing mig", "one of 1g, 2g, 3g, 4g, 7g");
  expect_refused("--colocate mig=7g --colocate mig=1g --gpu-sharing mig", "parts that fit on one GPU together");
  expect_refused("--colocate gpu-memory-utilization=0.6 --colocate gpu-memory-utilization=0.6",
                 "fit in memory together");
  expect_refused("--colocate load-share=0", "above 0");
  expect_refused("--colocate model=Llama-3.1-8B,lod-share=1", "did you mean");
  expect_refused(two + "--colocate tp=2", "engines on the same");
  expect_refused("--colocate mps-percentage=50 --gpu-sharing time_slicing", "--gpu-sharing mps");
}

}  // namespace foretoken::serve_sharing_test
