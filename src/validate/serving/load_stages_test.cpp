#include "validate/serving/load_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/simulated_time.h"
#include "library/library.h"
#include "validate/serving/validate_serving.h"

namespace foretoken::load_stages_test {

const std::string header =
    "experiment,model,device,tp,max_model_len,max_num_batched_tokens,max_num_seqs,stage,rate,prompts,prompt_len,"
    "output_len,count,failures,e2e_mean_ms,ttft_mean_ms\n";

std::vector<StagedRun> read(const std::string& rows) {
  CsvReader table = CsvReader::from_text(header + rows, "stages.csv");
  EXPECT_TRUE(has_load_stages(table));
  return read_staged_runs(table);
}

const std::string two_stages =
    "a,Llama-3.1-8B,h100_sxm,1,4096,2048,128,0,4,3,40,8,6,0,100,20\n"
    "a,Llama-3.1-8B,h100_sxm,1,4096,2048,128,1,8,3,40,8,4,0,110,22\n";

TEST(LoadStages, requests_follow_each_other_evenly_and_repeat_their_prompts) {
  const std::vector<StagedRun> runs = read(two_stages + "b,Llama-3.1-8B,h100_sxm,2,4096,2048,128,0,1,1,16,8,1,0,9,2\n");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[1].tensor, 2);
  EXPECT_EQ(runs[0].stages.size(), 2U);
  EXPECT_EQ(runs[0].flags.max_num_batched_tokens, 2048);
  const std::vector<Request> requests = requests_of(runs[0]);
  ASSERT_EQ(requests.size(), 10U);
  EXPECT_DOUBLE_EQ(to_seconds(requests[5].arrival).value(), 1.25);
  EXPECT_DOUBLE_EQ(to_seconds(requests[6].arrival).value(), 1.5) << "the next stage begins where the first ends";
  EXPECT_DOUBLE_EQ(to_seconds(requests[7].arrival).value(), 1.625);
  EXPECT_EQ(requests[0].prefix_blocks.size(), 2U) << "whole blocks of 40 tokens";
  EXPECT_EQ(requests[3].prefix_blocks, requests[0].prefix_blocks);
  EXPECT_NE(requests[1].prefix_blocks, requests[0].prefix_blocks);
}

TEST(LoadStages, a_release_says_how_the_engine_runs) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const StagedSpecs specs = staged_specs(read(two_stages)[0], library);
  EXPECT_EQ(specs.engine.stack, "vllm-0.14");
  EXPECT_TRUE(specs.engine.scheduling.async_scheduling);
  EXPECT_TRUE(specs.engine.scheduling.enable_prefix_caching);
  EXPECT_EQ(specs.load.listed.size(), 10U);
}

TEST(LoadStages, stages_are_scored_apart_and_those_that_a_client_left_are_not) {
  const std::string file = testing::TempDir() + "load_stages.csv";
  write_file(file, header + two_stages + "b,Llama-3.1-8B,h100_sxm,1,4096,2048,128,0,1,1,16,8,5,2,9,2\n");
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  std::vector<std::string> scored;
  const Validation result =
      validate_serving({.data = file}, library, serving_facts(library), [&](const ScoredServing& one) {
        scored.push_back(std::string(one.id) + " " + std::string(one.metric));
        EXPECT_GT(one.predicted.value, 0);
        EXPECT_LE(one.predicted.low, one.predicted.value);
        EXPECT_GE(one.predicted.high, one.predicted.value);
      });
  EXPECT_THAT(scored, testing::ElementsAre("a, stage 0 e2e_ms", "a, stage 0 ttft_ms", "a, stage 1 e2e_ms",
                                           "a, stage 1 ttft_ms"));
  ASSERT_EQ(result.skipped.size(), 1U);
  EXPECT_NE(result.skipped[0].why.find("dropped 2 of 5"), std::string::npos);
}

TEST(LoadStages, a_column_groups_them_and_a_wrong_one_is_refused) {
  const std::string file = testing::TempDir() + "grouped_stages.csv";
  write_file(file, header + two_stages);
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const Validation result = validate_serving({.data = file, .group_by = "rate"}, library, serving_facts(library));
  std::vector<std::string> names;
  for (const auto& group : result.groups) names.push_back(group.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("4/e2e_ms", "4/ttft_ms", "8/e2e_ms", "8/ttft_ms"));
  EXPECT_THROW(validate_serving({.data = file, .group_by = "foo"}, library, serving_facts(library)), InputError);
}

TEST(LoadStages, requests_that_no_engine_would_take_leave_the_run_out) {
  const std::string file = testing::TempDir() + "long_stages.csv";
  write_file(file, header + "b,Llama-3.1-8B,h100_sxm,1,4096,2048,128,0,1,1,4090,8,5,0,9,2\n");
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const Validation result = validate_serving({.data = file}, library, serving_facts(library));
  ASSERT_EQ(result.skipped.size(), 1U);
  EXPECT_NE(result.skipped[0].why.find("more than max_model_len, 4096"), std::string::npos);
}

TEST(LoadStages, mistakes_are_named_with_their_place) {
  try {
    read("a,M,h100_sxm,1,4096,2048,128,0,fast,3,40,8,6,0,100,20\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("rate"), std::string::npos);
  }
}

}  // namespace foretoken::load_stages_test
