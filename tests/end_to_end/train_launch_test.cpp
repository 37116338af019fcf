// Files and lines that start a training job: what a search writes for a framework, train reads back as the same plan.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"

namespace foretoken::train_launch_test {

class TrainLaunch : public CommandTest {
 protected:
  static Json json_of(const Outcome& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "train");
  }
  static double seconds_of(const Json& answer) { return answer.find("seconds")->find("value")->number(); }
};

TEST_F(TrainLaunch, files_are_read_back_as_the_plans_that_they_were_written_for) {
  const std::string machine = " --device h100_sxm --devices 16 --json";
  const std::string file = write("launch", "");
  for (const auto& [framework, asked] :
       {std::pair("megatron-lm", "-tp 2 -pp 2"), std::pair("megatron-bridge", "-tp 2 -pp 2"),
        std::pair("torchtitan", "-tp 2 --sharding parameters"), std::pair("axolotl", "--lora-rank 16"),
        std::pair("torchtune", "-tp 2"), std::pair("deepspeed", "--precision fp16"),
        std::pair("megatron-lm", "-tp 2 --precision fp16")}) {
    SCOPED_TRACE(framework);
    const Json searched =
        json_of(run_foretoken("plan train --model Llama-3.1-8B --global-batch-size 64 --seq-length 4096 "
                              "--recompute-granularity none --best 1 " +
                              std::string(asked) + " --launch " + framework + " --launch-out " + file + machine));
    const JsonView root(searched, framework);
    EXPECT_EQ(root.at("launch").at("slower").number(), 0);
    const JsonView best = root.at("best").items().front();
    // Files of Megatron-Bridge and DeepSpeed do not name the model; the stack is the one that was searched with.
    const Json read = json_of(run_foretoken("train --model Llama-3.1-8B --seq-length 4096 --stack " +
                                            root.at("stack").string() + " --from @" + file + machine));
    const JsonView plan = JsonView(read, framework).at("plan");
    for (const char* key : {"tensor", "pipeline", "data", "context", "virtual_stages", "micro_batch", "global_batch"}) {
      EXPECT_EQ(plan.at(key).integer(), best.at("plan").at(key).integer()) << key;
    }
    for (const char* key : {"sharding", "recompute"}) {
      EXPECT_EQ(plan.at(key).string(), best.at("plan").at(key).string()) << key;
    }
    EXPECT_DOUBLE_EQ(seconds_of(read), best.at("seconds").at("value").number());
  }
}

// The script names a dispatcher, so that is what the search prices.
TEST_F(TrainLaunch, experts_are_sent_by_the_dispatcher_that_the_script_names) {
  const std::string machine = " --device h200_sxm --devices 16 --json", file = write("launch", "");
  const Json searched = json_of(
      run_foretoken("plan train --model Qwen/Qwen3-30B-A3B --global-batch-size 64 --seq-length 4096 -tp 2 -pp 1 -ep 8 "
                    "--recompute-granularity none --best 1 --launch megatron-lm --launch-out " +
                    file + machine));
  const JsonView root(searched, "searched");
  EXPECT_EQ(root.at("best").items().front().at("plan").at("token_dispatcher").string(), "alltoall");
  const Json read = json_of(run_foretoken("train --model Qwen/Qwen3-30B-A3B --stack " + root.at("stack").string() +
                                          " --from @" + file + machine));
  EXPECT_EQ(JsonView(read, "read").at("plan").at("token_dispatcher").string(), "alltoall");
  EXPECT_EQ(JsonView(read, "read").at("plan").at("expert").integer(), 8);
}

const char* const megatron_line =
    "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --sequence-parallel "
    "--use-distributed-optimizer --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --swiglu "
    "--num-attention-heads 32 --normalization RMSNorm --disable-bias-linear --position-embedding-type rope "
    "--untie-embeddings-and-output-weights --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 "
    "--vocab-size 32000 --bf16";

TEST_F(TrainLaunch, a_line_and_a_file_with_it_ask_the_same) {
  const std::string machine = " --device h100_sxm --devices 8 --json";
  const Json line = json_of(run_foretoken("train --from '" + std::string(megatron_line) + "'" + machine));
  EXPECT_EQ(line.find("plan")->find("tensor")->integer(), 2);
  EXPECT_EQ(line.find("plan")->find("sharding")->string(), "optimizer");
  const std::string file = write("run.sh", std::string(megatron_line) + "\n");
  for (const std::string& from : {"--from @" + file, "--from " + file, "--config " + file}) {
    EXPECT_EQ(seconds_of(json_of(run_foretoken("train " + from + machine))), seconds_of(line)) << from;
  }
}

TEST_F(TrainLaunch, a_line_without_overlap_waits_for_its_communication) {
  const auto seconds = [&](const std::string& more) {
    return seconds_of(json_of(run_foretoken("train --from '" + std::string(megatron_line) + more +
                                            "' --device h100_sxm --devices 64 --json")));
  };
  EXPECT_GT(seconds(""), 1.02 * seconds(" --overlap-grad-reduce --overlap-param-gather --tp-comm-overlap"));
}

TEST_F(TrainLaunch, variables_of_a_file_stay_as_they_are) {
  const std::string line =
      "plan train --model Llama-3.1-8B --global-batch-size 64 --device h100_sxm --devices 8 --launch torchtune ";
  const std::string file = write("launch", "");
  ASSERT_EQ(run_foretoken(line + "--launch-out " + file).status, 0);
  EXPECT_NE(read_file(file, 1 << 20).find("output_dir: ${output_dir}"), std::string::npos);
  EXPECT_NE(run_foretoken(line).out.find("output_dir: ${output_dir}"), std::string::npos);
}

TEST_F(TrainLaunch, flags_override_what_a_line_says) {
  const std::string start = "train --from '" + std::string(megatron_line) + "' --device h100_sxm --devices 8 --json ";
  const Json own = json_of(run_foretoken(start + "--tensor-model-parallel-size 4"));
  EXPECT_EQ(own.find("plan")->find("tensor")->integer(), 4);
}

TEST_F(TrainLaunch, what_starts_no_training_job_is_refused) {
  const std::string machine = " --device h100_sxm --devices 8";
  for (const char* server : {"vllm serve meta-llama/Llama-3.1-8B", "vllm serve a/b --tensor-parallel-size 8",
                             "python -m sglang.launch_server --model-path a/b --context-length 4096"}) {
    expect_refused(run_foretoken("train --from '" + std::string(server) + "'" + machine), "this line starts a server");
  }
  expect_refused(run_foretoken("train --from @" + write("empty.toml", "") + machine), "empty.toml");
  expect_refused(run_foretoken("train --from @/no/such/run.toml" + machine), "/no/such/run.toml");
}

}  // namespace foretoken::train_launch_test
