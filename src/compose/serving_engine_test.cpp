#include "compose/serving_engine.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::serving_engine_test {

Device device(const char* name) {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(name);
}

const Model& llama() {
  static const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.1-8B");
  return model;
}

TEST(ServingEngine, step_limits_follow_the_device_as_vllm_sets_them) {
  const auto limits = [](const char* engine, const char* name) {
    const EngineFlags flags = resolved({.engine = engine}, llama(), device(name), {});
    return std::pair(flags.max_num_batched_tokens, flags.max_num_seqs);
  };
  EXPECT_EQ(limits("vllm", "rtx_4090"), std::pair(int64_t{2048}, int64_t{256}));
  EXPECT_EQ(limits("vllm", "h100_sxm"), std::pair(int64_t{8192}, int64_t{1024}));
  EXPECT_EQ(limits("vllm", "a100_sxm"), std::pair(int64_t{2048}, int64_t{256})) << "A100s count as small";
  EXPECT_EQ(limits("vllm", "b200_sxm"), std::pair(int64_t{16384}, int64_t{1024}));
  EXPECT_EQ(limits("vllm-0.19", "b200_sxm"), std::pair(int64_t{8192}, int64_t{1024}));
  EXPECT_EQ(limits("sglang", "h100_sxm").first, 8192);
  EXPECT_EQ(limits("trtllm", "h100_sxm"), std::pair(int64_t{8192}, int64_t{2048}));
}

TEST(ServingEngine, vllm_before_08_holds_a_whole_prompt_and_256_sequences_on_every_device) {
  const auto limits = [](int64_t max_model_len, const EngineFlags& given) {
    EngineFlags flags = given;
    flags.engine = "vllm-0.7.3";
    flags.max_model_len = max_model_len;
    flags = resolved(flags, llama(), device("h100_sxm"), {});
    return std::pair(flags.max_num_batched_tokens, flags.max_num_seqs);
  };
  EXPECT_EQ(limits(1024, {}), std::pair(int64_t{2048}, int64_t{256}));
  EXPECT_EQ(limits(16'384, {}), std::pair(int64_t{16'384}, int64_t{256}));
  EXPECT_EQ(limits(131'072, {}), std::pair(int64_t{2048}, int64_t{256})) << "beyond 32k prompts are cut";
  EXPECT_EQ(limits(16'384, {.max_num_batched_tokens = 20'000, .max_num_seqs = 64}),
            std::pair(int64_t{20'000}, int64_t{64}));
  const EngineFlags flags = resolved({.engine = "vllm-0.6"}, llama(), device("h100_sxm"), {});
  EXPECT_EQ(captured_graphs(flags), 35) << "of decodes alone";
}

TEST(ServingEngine, what_the_user_gives_stays) {
  const EngineFlags given{.memory_fraction = 0.5, .max_num_batched_tokens = 512, .max_num_seqs = 7, .block_size = 32};
  const EngineFlags flags = resolved(given, llama(), device("h100_sxm"), {});
  EXPECT_EQ(flags.memory_fraction, 0.5);
  EXPECT_EQ(flags.max_num_batched_tokens, 512);
  EXPECT_EQ(flags.max_num_seqs, 7);
  EXPECT_EQ(flags.block_size, 32);
  EXPECT_EQ(flags.max_model_len, llama().max_positions);
}

// Counts that vLLM logs: 51 sizes to 512 and 35 to 256; 35 and 19 when 128 sequences are the most.
TEST(ServingEngine, as_many_graphs_are_captured_as_vllm_captures) {
  const auto graphs = [](const EngineFlags& flags) {
    return captured_graphs(resolved(flags, llama(), device("rtx_4090"), {}));
  };
  EXPECT_EQ(graphs({}), 51 + 35);
  EXPECT_EQ(graphs({.max_num_seqs = 128}), 35 + 19);
  EXPECT_EQ(graphs({.enforce_eager = true}), 0);
}

TEST(ServingEngine, sglang_runs_as_many_requests_as_its_pool_says_and_not_as_its_graphs_do) {
  for (const char* name : {"rtx_4090", "h100_sxm"}) {
    const EngineFlags flags = resolved({.engine = "sglang"}, llama(), device(name), {});
    EXPECT_EQ(flags.max_num_seqs, 2048) << name << ": the fewest, until the pool is known";
    EXPECT_EQ(largest_graph(flags), device(name).name == "rtx_4090" ? 24 : 256);
    EXPECT_EQ(sequences_for_pool(flags, llama(), 1e5), 2048);
    EXPECT_EQ(sequences_for_pool(flags, llama(), 6.0 * static_cast<double>(llama().max_positions)), 6 * 512);
    EXPECT_EQ(sequences_for_pool(flags, llama(), 1e9), 4096);
  }
  const EngineFlags few = resolved({.engine = "sglang", .max_num_seqs = 16}, llama(), device("h100_sxm"), {});
  EXPECT_EQ(largest_graph(few), 16);
  const EngineFlags vllm = resolved({}, llama(), device("h100_sxm"), {});
  EXPECT_EQ(sequences_for_pool(vllm, llama(), 1e9), vllm.max_num_seqs);
}

// More requests than a chunk has tokens: prompts and decodes do not share a step.
TEST(ServingEngine, only_engines_that_mix_prompts_and_decodes_need_a_token_for_each_sequence) {
  const EngineFlags given{.engine = "sglang", .max_num_batched_tokens = 512, .max_num_seqs = 1024};
  EXPECT_EQ(resolved(given, llama(), device("h100_sxm"), {}).max_num_seqs, 1024);
}

TEST(ServingEngine, sglang_leaves_more_dynamic_memory_to_larger_chunks) {
  const auto fraction = [](int64_t chunk) {
    return resolved({.engine = "sglang", .max_num_batched_tokens = chunk}, llama(), device("h100_sxm"), {})
        .memory_fraction;
  };
  EXPECT_GT(fraction(2048), fraction(8192));
  EXPECT_GT(fraction(8192), 0.8);
  EXPECT_LT(fraction(8192), 0.9);
}

TEST(ServingEngine, sglang_leaves_more_dynamic_memory_to_larger_graphs) {
  const auto fraction = [](int64_t graph) {
    return resolved({.engine = "sglang", .max_num_batched_tokens = 8192, .max_cudagraph_capture_size = graph}, llama(),
                    device("rtx_4090"), {})
        .memory_fraction;
  };
  EXPECT_GT(fraction(8), fraction(512));
  EXPECT_EQ(fraction(0), fraction(24)) << "the largest graph of a card of 24 GB";
}

TEST(ServingEngine, a_wrong_name_or_limit_is_the_users_mistake) {
  EXPECT_THROW(engine_kind("vlm"), InputError);
  EXPECT_THROW(resolved({.max_num_batched_tokens = 64, .max_num_seqs = 65}, llama(), device("h100_sxm"), {}),
               InputError);
  Device unknown = device("h100_sxm");
  unknown.allocatable_memory.reset();
  EXPECT_NEAR(allocatable_bytes(unknown).value / allocatable_bytes(device("h100_sxm")).value, 1, 0.02);
  unknown.memory.reset();
  EXPECT_THROW(allocatable_bytes(unknown), InputError);
}

// PyTorch's total on these boards: 22.0 GiB of an L4, 14.6 to 14.7 GiB of a T4 (out-of-memory messages, as commonly
// quoted). A10G and L40S give what the same rule says of them.
TEST(ServingEngine, error_correcting_codes_in_the_same_memory_are_not_offered_to_programs) {
  const auto gib = [](const Device& board) { return allocatable_bytes(board).value / gibi; };
  EXPECT_NEAR(gib(device("l4")), 22.05, 0.1);
  EXPECT_NEAR(gib(device("t4")), 14.65, 0.1);
  for (const char* name : {"a10g", "l40s"}) {
    Device by_rule = device(name);
    by_rule.allocatable_memory.reset();
    EXPECT_NEAR(gib(by_rule) / gib(device(name)), 1, 0.01) << name;
  }
}

TEST(ServingEngine, sglang_runs_fewer_requests_with_drafts_and_for_deepseek_v4) {
  const auto running = [](const EngineFlags& flags, const Model& model, const ParallelPlan& plan = {}) {
    return resolved(flags, model, device("h200_sxm"), plan).max_num_seqs;
  };
  Model v4 = llama();
  v4.family = "deepseek_v4";
  EXPECT_EQ(running({.engine = "sglang", .drafts = true}, llama()), 48);
  EXPECT_EQ(running({.engine = "sglang"}, v4), 256);
  EXPECT_EQ(running({.engine = "sglang", .drafts = true}, v4), 256) << "set before drafts are looked at";
  EXPECT_EQ(running({.engine = "sglang", .max_num_seqs = 100, .drafts = true}, v4), 100);
  EXPECT_EQ(running({.drafts = true}, v4), running({}, llama())) << "vLLM does not";
  // Once the pool is known, it does not change that.
  const EngineFlags flags = resolved({.engine = "sglang", .drafts = true}, llama(), device("h200_sxm"), {});
  EXPECT_EQ(sequences_for_pool(flags, llama(), 1e9), 48);
}

TEST(ServingEngine, ranks_of_attention_share_the_limits_of_sglang_and_not_of_vllm) {
  const ParallelPlan ranks{.tensor = 1, .data = 8, .expert = 8};
  const EngineFlags given{.engine = "sglang", .max_num_batched_tokens = 32768, .max_num_seqs = 256};
  const EngineFlags shared = resolved(given, llama(), device("h200_sxm"), ranks);
  EXPECT_EQ(shared.max_num_batched_tokens, 4096);
  EXPECT_EQ(shared.max_num_seqs, 32);
  EXPECT_EQ(resolved({.engine = "sglang"}, llama(), device("h200_sxm"), ranks).max_num_batched_tokens, 8192 / 8);
  EXPECT_EQ(resolved({.engine = "sglang", .drafts = true}, llama(), device("h200_sxm"), ranks).max_num_seqs, 48 / 8);
  EngineFlags vllm = given;
  vllm.engine = "vllm";
  EXPECT_EQ(resolved(vllm, llama(), device("h200_sxm"), ranks).max_num_seqs, 256);
  // Replicas that share no experts are engines of their own.
  EXPECT_EQ(resolved(given, llama(), device("h200_sxm"), {.tensor = 1, .data = 8}).max_num_seqs, 256);
  // Their prompts together, and padding, take more of the memory than those of one.
  EXPECT_LT(shared.memory_fraction, resolved(given, llama(), device("h200_sxm"), {.tensor = 8}).memory_fraction);
}

}  // namespace foretoken::serving_engine_test
