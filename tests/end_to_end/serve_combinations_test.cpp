// Features of `serve` beside each other: each pair runs, or is refused in words.
#include <gtest/gtest.h>

#include "run.h"

namespace foretoken::serve_combinations_test {

TEST(ServeCombinations, each_pair_of_features_runs_or_is_refused) {
  const char* const features[] = {
      "--energy",
      "--kv-tier kind=host,size=20GiB",
      "--enable-lora --num-adapters 4 --max-loras 2",
      "--n 2",
      "--autoscaler reactive --max-replicas 3",
      "--gpu-mtbf 0.01 --cold-start 5",
      "--region name=a --region name=b",
      "--rag-passages 2 --rag-embed-ms 5 --rag-search-ms 5",
      "--prefill-pool count=1 --decode-pool count=1",
      "--colocate model=Llama-3.1-8B --colocate model=Qwen3-0.6B",
      "--speculative-config '{\"method\":\"ngram\",\"num_speculative_tokens\":2,\"acceptance_rate\":0.5}'",
      "--thinking-len 50",
      "--scheduling-policy deadline --ttft-goals 500"};
  const std::string load =
      "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 12 --request-rate 8 --random-input-len 200 "
      "--random-output-len 20 --max-model-len 4096 --json ";
  int ran = 0;
  for (const char* one : features) {
    for (const char* other : features) {
      const Outcome run = run_foretoken(load + one + (one == other ? "" : std::string(" ") + other));
      EXPECT_TRUE(run.status == 0 || run.status == 2) << one << " " << other << "\n" << run.err;
      if (run.status != 0) continue;
      ++ran;
      EXPECT_NE(run.out.find("\"completed\": 12,"), std::string::npos) << one << " " << other;
      EXPECT_EQ(run.out.find("_tokens\": -"), std::string::npos) << one << " " << other << ": tokens below zero";
    }
  }
  EXPECT_GT(ran, 80);
}

}  // namespace foretoken::serve_combinations_test
