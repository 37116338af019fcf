#include "serving/engine/engine_setup.h"

#include <gtest/gtest.h>

#include "compose/engine_release.h"
#include "serving/scheduling/scheduler.h"

namespace foretoken::engine_setup_test {

TEST(EngineSetup, an_offline_run_has_no_server_before_the_engine) {
  Stack stack;
  stack.costs.front = {.latency = Seconds(0.01), .request = Seconds(0.001), .token = Seconds(1e-6)};
  EXPECT_EQ(engine_front(stack, false).latency.value(), 0.01);
  EXPECT_EQ(engine_front(stack, true).latency.value(), 0);
  EXPECT_EQ(engine_front(stack, true).request.value(), 0);
}

TEST(EngineSetup, an_encoder_takes_whole_prompts_as_many_as_may_run) {
  const SchedulerOptions options =
      without_cache({.max_num_batched_tokens = 100, .max_num_seqs = 7, .max_model_len = 512});
  EXPECT_FALSE(options.enable_chunked_prefill);
  EXPECT_FALSE(options.enable_prefix_caching);
  EXPECT_GE(options.max_num_batched_tokens, 512);
  EXPECT_GE((options.num_gpu_blocks - 1) * options.block_size, 7 * 512) << "block 0 is nobody's";
}

TEST(EngineSetup, each_pipeline_stage_of_tensorrt_llm_has_a_batch_of_its_own) {
  const auto seats = [](const char* engine, int64_t stages) {
    ServingMemory memory;
    memory.starts = true;
    memory.flags = {.engine = engine, .max_num_seqs = 128};
    return scheduler_options(memory, {.pipeline = stages}).max_num_seqs;
  };
  EXPECT_EQ(seats("trtllm", 1), 128);
  EXPECT_EQ(seats("trtllm", 2), 256) << "max_num_sequences = max_batch_size * pp_size";
  EXPECT_EQ(seats("vllm-0.19", 2), 128);
}

TEST(EngineSetup, vllm_balances_its_ranks_and_nothing_else) {
  EXPECT_EQ(usual_router("vllm-0.19", 4), "data_parallel");
  EXPECT_EQ(usual_router("vllm-0.19", 1), "round_robin");
  EXPECT_EQ(usual_router("sglang", 4), "round_robin");
}

TEST(EngineSetup, graphs_reach_as_far_as_the_engine_captures_them) {
  Stack stack;
  stack.graph_sizes = {1, 2, 4, 8, 16, 32};
  const auto largest = [&](const EngineFlags& flags) { return engine_stack(stack, flags).graph_sizes.back(); };
  EXPECT_EQ(largest({.max_num_batched_tokens = 2048, .max_num_seqs = 4, .graph_limit = 512}), 8);
  EXPECT_EQ(largest({.max_num_batched_tokens = 2048, .max_num_seqs = 64, .graph_limit = 16}), 16);
  EXPECT_EQ(largest({.max_num_batched_tokens = 2048, .max_num_seqs = 64, .graph_limit = 64}), 64)
      << "beyond the list, on in its last step";
  EXPECT_EQ(
      largest(
          {.max_num_batched_tokens = 2048, .max_num_seqs = 4, .max_cudagraph_capture_size = 100, .graph_limit = 64}),
      96)
      << "as somebody asked";
  EXPECT_EQ(largest({.engine = "sglang", .max_num_batched_tokens = 2048, .max_num_seqs = 2048, .graph_limit = 24}), 16)
      << "by the device's memory, not by the requests that may run";
  EXPECT_EQ(largest({.engine = "trtllm", .max_num_batched_tokens = 2048, .max_num_seqs = 4, .graph_limit = 2048}), 4)
      << "only decodes are captured";
  EXPECT_TRUE(engine_stack(stack, {.max_num_batched_tokens = 2048, .max_num_seqs = 4, .enforce_eager = true})
                  .graph_sizes.empty());
  EXPECT_EQ(engine_family("vllm-0.19"), "vllm");
  EXPECT_EQ(engine_family("sglang"), "sglang");
}

TEST(EngineSetup, a_release_has_the_stack_and_the_scheduler_of_its_day) {
  EXPECT_EQ(usual_stack("vllm"), "vllm");
  EXPECT_EQ(usual_stack("vllm-0.10.2"), "vllm-0.10");
  EXPECT_EQ(usual_stack("vllm-0.15"), "vllm-0.14");
  EXPECT_EQ(usual_stack("trtllm-1.1"), "trtllm-1.1");
  EXPECT_EQ(usual_stack("trtllm-1.2"), "trtllm");
  EXPECT_EQ(usual_stack("sglang-0.5.9", true), "sglang-0.5.10");
  EXPECT_EQ(usual_stack("sglang", true), "sglang");
  for (const ReleaseBehavior& one : release_behaviors()) {
    EXPECT_EQ(scheduler_kind(one.scheduler).name, one.scheduler);
  }
  EXPECT_EQ(usual_scheduler("vllm-0.7"), "vllm_v0");
  EXPECT_EQ(usual_scheduler("sglang-0.5.9"), "sglang");
  EXPECT_FALSE(schedules_ahead("vllm-0.13"));
  EXPECT_TRUE(schedules_ahead("vllm-0.19"));
  EXPECT_TRUE(schedules_ahead("sglang"));
}

}  // namespace foretoken::engine_setup_test
