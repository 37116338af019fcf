// Newer request shapes through the command: limits equal to the plain run, and flags that lead nowhere.
#include <gtest/gtest.h>

#include "base/json.h"
#include "run.h"

namespace foretoken::serve_shapes_test {

constexpr const char* base =
    "serve --model Llama-3.1-8B --device h100_sxm --no-intervals --num-prompts 40 --request-rate 8 ";

std::string served(const std::string& flags) {
  const Outcome run = run_foretoken(base + flags);
  EXPECT_EQ(run.status, 0) << flags << "\n" << run.err;
  return run.out;
}

Json answer(const std::string& flags) {
  return parse_json(served(flags + " --json"), "answer");
}

void expect_refused(const std::string& flags, const std::string& mentions) {
  const Outcome run = run_foretoken(base + flags);
  EXPECT_EQ(run.status, 2) << flags << "\n" << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(in_one_line(run.err).find(mentions), std::string::npos) << "should mention: " << mentions << "\n"
                                                                    << run.err;
}

TEST(ServeShapes, one_output_one_beam_and_a_block_of_one_token_are_the_plain_run) {
  const std::string plain = served("");
  EXPECT_EQ(served("--n 1"), plain);
  EXPECT_EQ(served("--beam-width 1"), plain);
  EXPECT_EQ(served("--task generate"), plain);
  EXPECT_EQ(answer("--diffusion-block 1").find("mean_e2el_ms")->number(), answer("").find("mean_e2el_ms")->number());
}

TEST(ServeShapes, tokens_are_conserved) {
  const int64_t input = answer("").find("total_input_tokens")->integer();
  const int64_t output = answer("").find("total_output_tokens")->integer();
  const Json samples = answer("--n 3");
  EXPECT_EQ(samples.find("total_input_tokens")->integer(), input);
  EXPECT_EQ(samples.find("total_output_tokens")->integer(), 3 * output);
  EXPECT_EQ(samples.find("completed")->integer(), 40);
  const Json passages = answer("--rag-passages 4 --rag-passage-len 100");
  EXPECT_EQ(passages.find("total_input_tokens")->integer(), input + 40 * 400);
  EXPECT_EQ(passages.find("total_output_tokens")->integer(), output);
  const Json pooled = answer("--task embed");
  EXPECT_EQ(pooled.find("total_input_tokens")->integer(), input);
  EXPECT_EQ(pooled.find("total_output_tokens")->integer(), 0);
  const Json thinking = answer("--thinking-len 100");
  EXPECT_EQ(thinking.find("total_output_tokens")->integer(),
            output + thinking.find("thinking")->find("tokens")->integer());
  const Json pictures = answer("--vision-encoder llava-1.5-7b-hf --images 2");
  EXPECT_EQ(pictures.find("total_input_tokens")->integer(), input + 40 * 2 * 576);
}

TEST(ServeShapes, stages_are_in_the_text_and_in_json_and_part_of_the_first_token) {
  const std::string flags = "--rag-passages 4 --rag-search-ms 50 --rag-search-servers 40 --rag-search-batch 1 ";
  EXPECT_NE(served(flags + "--rag-embed-ms 5").find("embed"), std::string::npos);
  const Json json = answer(flags);
  const Json& stage = json.find("stages")->items().front();
  EXPECT_EQ(stage.find("name")->string(), "search");
  EXPECT_EQ(stage.find("requests")->integer(), 40);
  EXPECT_DOUBLE_EQ(stage.find("mean_service_ms")->number(), 50);
  EXPECT_EQ(stage.find("mean_wait_ms")->number(), 0) << "a server for everybody";
  EXPECT_GT(json.find("mean_ttft_ms")->number(), 50);
}

TEST(ServeShapes, every_shape_is_served_with_separate_pools_and_several_replicas_too) {
  for (const std::string shape :
       {"--n 3 --n-spread 0.5", "--rag-passages 2 --rag-search-ms 3", "--thinking-len 50",
        "--vision-encoder gemma-3-4b-it", "--vision-encoder gemma-3-4b-it --encoder-servers 1",
        "--diffusion-block 8 --diffusion-steps 4"}) {
    for (const std::string engines :
         {"--replicas 3", "--prefill-pool count=1 --decode-pool count=2", "--engine sglang", "--max-concurrency 3"}) {
      const Json json = answer(shape + " " + engines);
      EXPECT_EQ(json.find("completed")->integer(), 40) << shape << " " << engines;
    }
  }
}

TEST(ServeShapes, encoders_embed_and_do_not_generate) {
  const std::string bert =
      "serve --model bert-base-uncased --device h100_sxm --num-prompts 100 --random-input-len 200 ";
  const Outcome embedded = run_foretoken(bert + "--task embed --json");
  ASSERT_EQ(embedded.status, 0) << embedded.err;
  const Json json = parse_json(embedded.out, "answer");
  EXPECT_EQ(json.find("completed")->integer(), 100);
  EXPECT_EQ(json.find("total_input_tokens")->integer(), 100 * 200);
  const Outcome generated = run_foretoken(bert);
  EXPECT_EQ(generated.status, 2);
  EXPECT_NE(generated.err.find("--task embed"), std::string::npos) << generated.err;
}

TEST(ServeShapes, flags_without_their_feature_are_refused) {
  expect_refused("--rag-skew 1", "--rag-skew");
  expect_refused("--rag-passages 2 --rag-search-ms 3 --rag-vectors 1e9", "--rag-vectors");
  expect_refused("--rag-passages 2 --rag-embed-ms 3 --rag-embed-model bert-base-uncased", "--rag-embed-ms");
  expect_refused("--rag-passages 5 --rag-corpus 3", "--rag-corpus");
  expect_refused("--images 2", "--images");
  expect_refused("--vision-encoder gemma-3-4b-it --encoder-batch 2", "--encoder-batch");
  expect_refused("--thinking-sigma 2", "--thinking-sigma");
  expect_refused("--thinking-len 100 --thinking-hard-share 0.5", "--thinking-hard-len");
  expect_refused("--n-spread 0.5", "--n-spread");
  expect_refused("--n 2 --beam-width 2", "--beam-width");
  expect_refused("--task embed --n 2", "--n");
  expect_refused("--diffusion-block 32 --diffusion-steps 5", "a divisor");
  expect_refused("--subagents 2", "--subagents");
  expect_refused("--dataset-name agents --subagent-turns 2", "--subagent-turns");
  expect_refused("--dataset-name agents --rag-passages 2", "--rag-passages");
}

TEST(ServeShapes, unknown_names_and_sizes_come_with_what_was_expected) {
  expect_refused("--vision-encoder llava-1.5-7b", "did you mean llava-1.5-7b-hf");
  expect_refused("--vision-encoder gemma-3-4b-it --image-sizes 100", "--image-sizes");
  expect_refused("--vision-encoder gemma-3-4b-it --image-sizes 100x-2", "--image-sizes");
  expect_refused("--task embd", "did you mean embed");
  expect_refused("--rag-passages 2 --rag-embed-model bert-bse-uncased", "bert-base-uncased");
}

}  // namespace foretoken::serve_shapes_test
