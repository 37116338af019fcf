#include "compose/serving_memory.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::serving_memory_test {

Model model(const char* name) {
  return ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(name);
}

Device device(const char* name) {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(name);
}

ServingMemory llama_on(const char* gpu, const EngineFlags& flags, const ParallelPlan& plan = {}) {
  return serving_memory(model("Llama-3.1-8B"), device(gpu), plan, flags);
}

// SGLang's own share shrinks with the ranks in lock step, to nothing with 32.
TEST(ServingMemory, many_attention_ranks_are_told_to_set_the_memory_share) {
  const ParallelPlan plan{.data = 32, .expert = 32};
  const EngineFlags flags{.engine = "sglang", .max_model_len = 4096};
  const ServingMemory memory = serving_memory(model("DeepSeek-V3"), device("h100_sxm"), plan, flags);
  EXPECT_EQ(memory.flags.memory_fraction, 0);
  ASSERT_FALSE(memory.remedies.empty());
  EXPECT_EQ(memory.remedies.front().change, "{gpu_memory_utilization} 0.85");
}

// DeepEP brings a rank about as many tokens as it has itself; else it holds those of all ranks.
TEST(ServingMemory, buffers_of_experts_hold_the_tokens_that_come) {
  const EngineFlags flags{
      .engine = "sglang", .memory_fraction = 0.85, .max_num_batched_tokens = 32 * 8192, .max_model_len = 4096};
  const auto peak = [&](ExpertExchange exchange) {
    const ParallelPlan plan{.data = 32, .expert = 32, .exchange = exchange};
    return serving_memory(model("DeepSeek-V3"), device("h100_sxm"), plan, flags).profile.peak_bytes.value;
  };
  EXPECT_GT(peak(ExpertExchange::all_gather), 50e9);
  EXPECT_LT(peak(ExpertExchange::all_to_all), 10e9);
}

// num_gpu_blocks of a recorded vLLM 0.19.0 run on an RTX 4090 (github.com/casys-kaist/LLMServingSim, bench/examples).
TEST(ServingMemory, an_rtx_4090_has_the_blocks_it_really_had) {
  const ServingMemory memory = llama_on("rtx_4090", {.engine = "vllm-0.19",
                                                     .memory_fraction = 0.90,
                                                     .max_num_batched_tokens = 2048,
                                                     .max_num_seqs = 256,
                                                     .max_model_len = 32768});
  EXPECT_NEAR(memory.blocks.value / 2588, 1, 0.05);
  EXPECT_LE(memory.blocks.low, 2588);
  EXPECT_GE(memory.blocks.high, 2588);
  EXPECT_TRUE(memory.starts);
}

// Tokens logged by vLLM 0.19.0 on an H100 at 0.95 (github.com/llm-d-incubation/llm-d-planner, accuracy report), and by
// 0.19.1 on an A100 40 GB at 0.90 (a start-up log).
TEST(ServingMemory, published_cache_sizes_are_met) {
  const auto tokens = [](const char* name, const char* gpu, double fraction, DType kv) {
    const EngineFlags flags{.engine = "vllm-0.19", .memory_fraction = fraction, .max_model_len = 8192, .kv_dtype = kv};
    return serving_memory(model(name), device(gpu), {}, flags).tokens.value;
  };
  EXPECT_NEAR(tokens("Llama-3.1-8B", "h100_sxm", 0.95, DType::bf16) / 476'016, 1, 0.005);
  EXPECT_NEAR(tokens("Llama-3.1-8B", "h100_sxm", 0.95, DType::fp8) / 952'032, 1, 0.005);
  EXPECT_NEAR(tokens("Qwen2.5-7B", "h100_sxm", 0.95, DType::bf16) / 1'096'000, 1, 0.005);
  EXPECT_NEAR(tokens("Qwen3-8B", "a100_sxm_40gb", 0.90, DType::bf16) / 140'960, 1, 0.02);
}

TEST(ServingMemory, the_parts_of_vllm_add_up_to_its_budget) {
  for (const char* engine : {"vllm", "vllm-0.19"}) {
    const ServingMemory m = llama_on("h100_sxm", {.engine = engine});
    const double graphs = engine_kind(engine).graphs_in_budget ? m.graphs.value : 0;
    const double sum = m.weights.value + m.profile.peak_bytes.value + m.runtime.value + graphs + m.kv_pool.value;
    EXPECT_NEAR(sum / m.budget.value, 1, 1e-12);
    EXPECT_NEAR(m.budget.value, m.flags.memory_fraction * m.total.value, 1);
  }
}

TEST(ServingMemory, each_engine_means_something_else_by_its_fraction) {
  const auto pool = [](const char* engine) {
    return llama_on("h100_sxm", {.engine = engine, .memory_fraction = 0.8}).kv_pool.value;
  };
  EXPECT_GT(pool("sglang"), pool("vllm")) << "activations are outside SGLang's share";
  EXPECT_GT(pool("trtllm"), pool("vllm")) << "a share of what is free, not of all";
}

TEST(ServingMemory, sglang_runs_more_requests_where_its_pool_holds_more_of_the_longest) {
  const auto running = [](const EngineFlags& flags) { return llama_on("h100_sxm", flags).flags.max_num_seqs; };
  EXPECT_EQ(running({.engine = "sglang", .max_model_len = 131'072}), 2048) << "the pool holds three of these";
  EXPECT_EQ(running({.engine = "sglang", .max_model_len = 4096}), 4096);
  EXPECT_EQ(running({.engine = "sglang", .max_num_seqs = 300, .max_model_len = 4096}), 300);
  EXPECT_EQ(llama_on("h100_sxm", {.engine = "sglang", .max_num_seqs = 4096}).kv_pool.value,
            llama_on("h100_sxm", {.engine = "sglang"}).kv_pool.value)
      << "what is kept out of the pool is for graphs, not for requests";
}

TEST(ServingMemory, more_room_never_gives_fewer_blocks) {
  double before = 0;
  for (double fraction = 0.3; fraction < 1; fraction += 0.05) {
    const double blocks = llama_on("h100_sxm", {.memory_fraction = fraction}).blocks.value;
    EXPECT_GE(blocks, before);
    before = blocks;
  }
  EXPECT_GT(llama_on("h100_sxm", {.enforce_eager = true}).blocks.value, llama_on("h100_sxm", {}).blocks.value);
  EXPECT_GT(llama_on("h100_sxm", {.max_num_batched_tokens = 2048, .max_num_seqs = 256}).blocks.value,
            llama_on("h100_sxm", {}).blocks.value);
}

TEST(ServingMemory, an_fp8_cache_has_twice_the_blocks_in_the_same_pool) {
  const ServingMemory wide = llama_on("h100_sxm", {}), narrow = llama_on("h100_sxm", {.kv_dtype = DType::fp8});
  EXPECT_EQ(wide.kv_pool.value, narrow.kv_pool.value);
  EXPECT_NEAR(narrow.blocks.value, 2 * wide.blocks.value, 1);
}

TEST(ServingMemory, longer_sequences_never_fit_more_often) {
  for (const char* name : {"Llama-3.1-8B", "gemma-3-27b-it", "gpt-oss-20b", "Qwen3.5-27B"}) {
    const ServingMemory memory = serving_memory(model(name), device("h200_sxm"), {}, {.max_model_len = 8192});
    int64_t before = memory.sequences_of(1, 1);
    for (int64_t tokens = 16; tokens <= 100'000; tokens *= 2) {
      const int64_t now = memory.sequences_of(tokens, 1);
      EXPECT_LE(now, before) << name;
      before = now;
    }
    EXPECT_EQ(memory.sequences_of(8192, memory.flags.max_num_batched_tokens), memory.sequences.value) << name;
  }
}

TEST(ServingMemory, decodes_past_their_window_fit_more_often_than_whole_prompts) {
  const ServingMemory gemma = serving_memory(model("gemma-3-27b-it"), device("h200_sxm"), {}, {});
  EXPECT_GT(gemma.sequences_of(16384, 1), gemma.sequences_of(16384, 8192));
  const ServingMemory llama = llama_on("h200_sxm", {});
  EXPECT_EQ(llama.sequences_of(16384, 1), llama.sequences_of(16384, 8192)) << "no windows, no difference";
}

TEST(ServingMemory, too_high_a_share_leaves_no_room_for_the_context) {
  EXPECT_GT(llama_on("h100_sxm", {.memory_fraction = 0.9}).unused.value, 0);
  EXPECT_LT(llama_on("h100_sxm", {.memory_fraction = 0.999}).unused.value, 0);
}

TEST(ServingMemory, the_tightest_stage_decides) {
  const ServingMemory both = llama_on("rtx_4090", {}, {.pipeline = 2});
  EXPECT_EQ(both.stage, 1) << "it holds the head and samples";
  EXPECT_GT(both.blocks.value, llama_on("rtx_4090", {}).blocks.value);
}

TEST(ServingMemory, what_the_user_fixes_is_not_worked_out) {
  EXPECT_EQ(llama_on("h100_sxm", {.num_gpu_blocks_override = 1000}).blocks.value, 1000);
  const ServingMemory fixed = llama_on("h100_sxm", {.kv_cache_memory_bytes = int64_t{10} << 30});
  EXPECT_EQ(fixed.kv_pool.value, 10 * gibi);
  EXPECT_EQ(fixed.blocks.value, 10 * gibi / (16 * 131072));
}

TEST(ServingMemory, a_model_that_does_not_fit_says_by_how_much_and_what_helps) {
  const ServingMemory large = serving_memory(model("Llama-3.1-70B"), device("h100_sxm"), {}, {.max_model_len = 8192});
  EXPECT_FALSE(large.starts);
  EXPECT_LT(large.kv_pool.value, 0);
  EXPECT_EQ(large.sequences.value, 0);
  EXPECT_NEAR(large.short_by.value(),
              sequence_bytes(large.layout, 8192, 8192).value() + large.layout.block_bytes.value() - large.kv_pool.value,
              1);
  ASSERT_FALSE(large.remedies.empty());
  EXPECT_EQ(large.remedies.back().change, "-tp 4");
  const ServingMemory wider =
      serving_memory(model("Llama-3.1-70B"), device("h100_sxm"), {.tensor = 4}, {.max_model_len = 8192});
  EXPECT_TRUE(wider.starts);
  EXPECT_EQ(large.remedies.back().sequences, wider.sequences.value);
  EXPECT_TRUE(wider.remedies.empty());
}

TEST(ServingMemory, remedies_that_nobody_reads_are_not_sought) {
  const Model large = model("Llama-3.1-70B");
  const ServingMemory told = serving_memory(large, device("h100_sxm"), {}, {.max_model_len = 8192});
  const ServingMemory quiet =
      serving_memory(large, device("h100_sxm"), {}, {.max_model_len = 8192}, RemediesSought::no);
  EXPECT_FALSE(told.remedies.empty());
  EXPECT_TRUE(quiet.remedies.empty());
  EXPECT_FALSE(quiet.starts);
  EXPECT_EQ(quiet.short_by.value(), told.short_by.value());
}

TEST(ServingMemory, a_sequence_too_long_is_told_how_long_it_may_be) {
  const ServingMemory memory = llama_on("rtx_4090", {});  // max_model_len 131072 by its config
  ASSERT_FALSE(memory.starts);
  ASSERT_FALSE(memory.remedies.empty());
  const int64_t longest = memory.remedies.front().longest_model;
  EXPECT_EQ(memory.remedies.front().change, "{max_model_len} " + std::to_string(longest));
  EXPECT_TRUE(llama_on("rtx_4090", {.max_model_len = longest}).starts);
  EXPECT_FALSE(llama_on("rtx_4090", {.max_model_len = longest + 1024}).starts);
}

TEST(ServingMemory, sglang_and_tensorrt_llm_start_with_a_shorter_context_where_vllm_does_not_start) {
  for (const char* engine : {"sglang", "trtllm"}) {
    const ServingMemory memory = llama_on("rtx_4090", {.engine = engine});
    EXPECT_TRUE(memory.starts) << engine;
    EXPECT_EQ(memory.asked_model_len, 131'072) << engine;
    EXPECT_LT(memory.flags.max_model_len, 131'072) << engine;
    EXPECT_EQ(memory.sequences.value, 1) << engine;
    EXPECT_EQ(llama_on("rtx_4090", {.engine = engine, .max_model_len = 4096}).asked_model_len, 0) << engine;
    const ServingMemory large = serving_memory(model("Llama-3.1-70B"), device("rtx_4090"), {}, {.engine = engine});
    EXPECT_FALSE(large.starts) << "the weights alone do not fit " << engine;
  }
}

TEST(ServingMemory, every_model_of_the_library_has_an_answer_under_every_engine) {
  const ModelCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/models");
  const Device gpu = device("h200_sxm");
  for (const std::string& name : catalogue.names()) {
    for (const EngineKind& kind : engine_kinds()) {
      const ServingMemory memory =
          serving_memory(catalogue.model(name), gpu, {}, {.engine = std::string(kind.name), .max_model_len = 2048});
      EXPECT_GT(memory.weights.value, 0) << name;
      EXPECT_LE(memory.blocks.low, memory.blocks.value) << name;
      EXPECT_GE(memory.blocks.high, memory.blocks.value) << name;
      EXPECT_EQ(memory.starts, memory.short_by.value() == 0) << name << " " << kind.name;
    }
  }
}

}  // namespace foretoken::serving_memory_test
