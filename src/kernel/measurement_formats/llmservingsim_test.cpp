#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "kernel/measurement_rows.h"
#include "kernel/test_support.h"
#include "kernel/validate.h"

namespace foretoken::llmservingsim_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const ModelCatalogue& models() {
  static const ModelCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/models");
  return catalogue;
}

class LlmServingSimTest : public test_support::TestWithFolder {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = folder / name;
    fs::create_directories(path.parent_path());
    write_file(path.parent_path() / "meta.yaml", "profiler_version: 1.0.0\n");
    write_file(path, text);
    return path;
  }
  struct Read {
    std::vector<TableRow> rows;
    std::vector<std::string> reasons;
  };
  static Read read(const fs::path& path) {
    Read result;
    const MeasurementFiles files = find_measurement_files(path);
    EXPECT_EQ(files.files.size(), 1u);
    const auto rows = open_rows(files.files.at(0), &models());
    std::string why;
    while (rows->next()) {
      if (const auto row = rows->read(why)) {
        result.rows.push_back(*row);
      } else {
        result.reasons.push_back(why);
      }
    }
    return result;
  }
};

TEST_F(LlmServingSimTest, layers_have_the_sizes_of_one_rank_of_the_model) {
  const Read found = read(write("RTX4090/Llama-3.1-8B_bf16/tp2_dense.csv",
                                "layer,tokens,time_us\nqkv_proj,7,10\nact_fn,7,3\nrotary_emb,7,4\nembedding,7,2\n"));
  ASSERT_EQ(found.rows.size(), 4u);
  EXPECT_EQ(std::get<GemmShape>(found.rows[0].shape), (GemmShape{.m = 7, .n = (32 + 8 + 8) * 128 / 2, .k = 4096}));
  EXPECT_EQ(std::get<ActivationShape>(found.rows[1].shape), (ActivationShape{.rows = 7, .width = 14336 / 2}));
  EXPECT_EQ(std::get<RopeShape>(found.rows[2].shape), (RopeShape{.tokens = 7, .heads = 16, .kv_heads = 4}));
  EXPECT_EQ(std::get<EmbeddingShape>(found.rows[3].shape), (EmbeddingShape{.tokens = 7, .width = 4096}));
  EXPECT_EQ(found.rows[0].microseconds, 10);
  EXPECT_EQ(found.rows[0].caches, Caches::cold);
  EXPECT_EQ(found.rows[3].caches, Caches::benchmark);
  EXPECT_EQ(found.rows[0].variant, "");
  EXPECT_EQ(found.rows[1].variant, "vllm");
}

TEST_F(LlmServingSimTest, layers_that_are_not_one_known_kernel_are_skipped_with_the_reason) {
  const Read found = read(write("RTX4090/Qwen3-32B_bf16/tp2_dense.csv",
                                "layer,tokens,time_us\nlayernorm,1,2\nqk_norm,1,2\nfinal_layernorm,1,2\nrouter,1,2\n"));
  EXPECT_TRUE(found.rows.empty());
  ASSERT_EQ(found.reasons.size(), 4u);
  EXPECT_THAT(found.reasons[0], HasSubstr("residual"));
  EXPECT_THAT(found.reasons[1], HasSubstr("queries and keys"));
  EXPECT_THAT(found.reasons[2], HasSubstr("copy"));
  EXPECT_THAT(found.reasons[3], HasSubstr("router is not known"));
}

TEST_F(LlmServingSimTest, the_head_runs_once_for_every_sequence) {
  const Read found = read(write("RTX4090/Llama-3.1-8B_bf16/tp1_per_sequence.csv",
                                "layer,sequences,time_us\nlm_head,5,1000\nsampler,5,30\n"));
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(std::get<GemmShape>(found.rows[0].shape), (GemmShape{.m = 5, .n = 128256, .k = 4096}));
  EXPECT_EQ(std::get<SamplingShape>(found.rows[1].shape).rows, 5);
}

TEST_F(LlmServingSimTest, a_batch_is_a_prefill_a_decode_or_both) {
  const Read found = read(write("RTX4090/Llama-3.1-8B_bf16/tp1_attention.csv",
                                "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
                                "16,512,0,0,10\n0,0,4,100,11\n16,512,4,100,12\n0,0,0,0,1\n"));
  ASSERT_EQ(found.rows.size(), 3u);
  const auto& prefill = std::get<AttentionShape>(found.rows[0].shape);
  EXPECT_EQ(prefill.phase, AttentionPhase::prefill);
  EXPECT_EQ(prefill.q_len, 16);
  EXPECT_EQ(prefill.kv_len, 528);
  EXPECT_EQ(prefill.kv_heads, 8);
  const auto& decode = std::get<AttentionShape>(found.rows[1].shape);
  EXPECT_EQ(decode.phase, AttentionPhase::decode);
  EXPECT_EQ(decode.batch, 4);
  EXPECT_EQ(decode.kv_len, 101);  // the new token is a key too
  const auto& both = std::get<MixedAttentionShape>(found.rows[2].shape);
  EXPECT_EQ(both.prompt_count(), 1);
  EXPECT_EQ(both.decode_keys, 404);
  EXPECT_TRUE(both.writes_kv);
  ASSERT_EQ(found.reasons.size(), 1u);
  EXPECT_EQ(found.reasons[0], "an empty batch");
}

TEST_F(LlmServingSimTest, unequal_decodes_are_timed_over_three_iterations) {
  const Read found = read(write("RTX4090/Llama-3.1-8B_bf16/tp1_skew.csv",
                                "regime,n,nb,ratio,skew,pc,kp,kvs,kv_big,kv_mean,t_mean_us,t_max_us,t_skew_us\n"
                                "pure,4,1,0.25,4,0,0,128,512,224,60,90,66\n"));
  ASSERT_EQ(found.rows.size(), 1u);
  const auto& batch = std::get<MixedAttentionShape>(found.rows[0].shape);
  EXPECT_EQ(batch.decodes, 4);
  EXPECT_EQ(batch.decode_keys, 3 * 129 + 513);
  EXPECT_EQ(batch.longest_decode, 513);
  EXPECT_EQ(found.rows[0].microseconds, 22);
}

TEST_F(LlmServingSimTest, activated_experts_are_the_experts_of_the_layer) {
  const Read found = read(write("RTXPRO6000/Qwen3-30B-A3B-Instruct-2507_bf16/tp1_moe.csv",
                                "tokens,activated_experts,time_us\n16,32,200\n16,4,100\n"));
  ASSERT_EQ(found.rows.size(), 1u);
  const auto& moe = std::get<MoeShape>(found.rows[0].shape);
  EXPECT_EQ(moe.tokens, 16);
  EXPECT_EQ(moe.experts, 32);
  EXPECT_EQ(moe.top_k, 8);
  EXPECT_EQ(found.reasons.size(), 1u);
}

TEST_F(LlmServingSimTest, a_folder_of_tables_is_scored_by_device_and_family) {
  write("RTX4090/Llama-3.1-8B_bf16/tp1_dense.csv", "layer,tokens,time_us\nqkv_proj,7,60\nact_fn,7,3\nlayernorm,7,2\n");
  write("RTX4090/Llama-3.1-8B_bf16/tp1_attention.csv",
        "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,512,4,100,12\n");
  fs::create_directories(folder / "v0/H100/Llama-3.1-8B");
  write_file(folder / "v0/H100/Llama-3.1-8B/tp1_layers_us.csv", "tokens,rope\n1,17\n");
  const auto roofline = [](const Device& device, Caches /*caches*/) { return KernelPredictor(device); };
  KernelValidationRequest request{.data = folder, .models = &models()};
  const Validation all = validate_kernels(request, test_support::hardware(), roofline);
  ASSERT_EQ(all.groups.size(), 3u);
  EXPECT_EQ(all.groups[0].name, "RTX4090/activation");
  EXPECT_EQ(all.groups[1].name, "RTX4090/attention_mixed");
  EXPECT_EQ(all.groups[2].name, "RTX4090/gemm");
  ASSERT_EQ(all.skipped.size(), 2u);
  EXPECT_THAT(all.skipped[0].why, HasSubstr("eager"));
  EXPECT_THAT(all.skipped[1].why, HasSubstr("residual"));

  request.families = {"gemm"};
  const Validation some = validate_kernels(request, test_support::hardware(), roofline);
  ASSERT_EQ(some.groups.size(), 1u);
  EXPECT_EQ(some.groups[0].name, "RTX4090/gemm");
}

TEST_F(LlmServingSimTest, broken_tables_are_named_with_the_position) {
  const fs::path negative = write("RTX4090/Llama-3.1-8B_bf16/tp1_attention.csv",
                                  "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n-16,512,4,100,12\n");
  const InputProblem problem = test_support::problem_of([&] { read(negative); });
  EXPECT_EQ(problem.line, 2);
  EXPECT_THAT(problem.path, HasSubstr("prefill_chunk"));

  const fs::path absent = write("RTX4090/Llama-3.1-8B_bf16/tp1_dense.csv", "layer,time_us\nqkv_proj,3\n");
  EXPECT_THAT(test_support::problem_of([&] { read(absent); }).expected, HasSubstr("tokens"));

  const fs::path unknown = write("RTX4090/Llama-9-8B_bf16/tp1_dense.csv", "layer,tokens,time_us\nqkv_proj,3,4\n");
  EXPECT_THAT(test_support::problem_of([&] { read(unknown); }).suggestion, HasSubstr("Llama-3"));
}

}  // namespace foretoken::llmservingsim_test
