#include "model/checkpoint_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/catalogue.h"
#include "model/step.h"

namespace foretoken::checkpoint_name_test {

std::string scheme_in(std::string_view name) {
  const CheckpointName parts = parse_checkpoint_name(name);
  if (!parts.format) return "none";
  return parts.format->scheme ? std::string(facts(*parts.format->scheme).name) : "not simulated";
}

TEST(CheckpointName, a_format_stands_behind_the_model) {
  const CheckpointName parts = parse_checkpoint_name("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic");
  EXPECT_EQ(parts.organization, "RedHatAI");
  EXPECT_EQ(parts.model, "Meta-Llama-3.1-70B-Instruct");
  EXPECT_EQ(parts.format->text, "FP8-dynamic");
}

TEST(CheckpointName, every_usual_ending_is_read) {
  const std::pair<const char*, const char*> names[] = {{"Llama-3.1-8B-Instruct-FP8", "fp8"},
                                                       {"Llama-3.3-70B-Instruct-FP8-KV", "fp8"},
                                                       {"Qwen3-8B-FP8-BLOCK", "fp8_block"},
                                                       {"Qwen3-32B-NVFP4", "nvfp4"},
                                                       {"nvidia/DeepSeek-R1-0528-FP4-v2", "nvfp4"},
                                                       {"gpt-oss-20b-MXFP4", "w4a16_mxfp4"},
                                                       {"Qwen2.5-72B-Instruct-AWQ", "int4_wo"},
                                                       {"Qwen2.5-72B-Instruct-GPTQ-Int4", "int4_wo"},
                                                       {"Qwen2.5-72B-Instruct-GPTQ-Int8", "int8_wo"},
                                                       {"Mistral-7B-Instruct-v0.3-W4A16", "int4_wo"},
                                                       {"Llama-3.1-8B-quantized.w8a8", "int8"},
                                                       {"Llama-3.1-8B-quantized.w8a16", "int8_wo"},
                                                       {"Llama-3.1-8B-W8A8-FP8", "fp8"},
                                                       {"DeepSeek-R1-Channel-INT8", "int8"},
                                                       {"Llama-3.2-1B-unsloth-bnb-4bit", "int4_wo"},
                                                       {"Llama-3.2-1B-bnb-8bit", "int8_wo"},
                                                       {"gpt-oss-20b-BF16", "bf16"},
                                                       {"Llama-3.1-8B-Instruct-GGUF", "not simulated"},
                                                       {"Llama-3.1-8B-Instruct-Q4_K_M", "not simulated"},
                                                       {"DeepSeek-R1-W4AFP8", "int4_wo"},
                                                       {"Kimi-K2.5-w4a8", "int4_wo"},
                                                       {"MiniMax-M3-MXFP8", "fp8_block"},
                                                       {"Ling-3.0-flash-int4", "int4_wo"},
                                                       {"Llama-3.1-8B-W4A4", "not simulated"}};
  for (const auto& [name, scheme] : names) EXPECT_EQ(scheme_in(name), scheme) << name;
}

TEST(CheckpointName, a_name_without_a_format_states_none) {
  for (const char* name : {"Llama-3.1-8B-Instruct", "Mixtral-8x7B-v0.1", "Phi-3-mini-4k-instruct", "Qwen3-235B-A22B",
                           "glm-4-9b-hf", "DeepSeek-V3", "Some-Model-v2", "", "fp8", "-fp8", "/", "a/"}) {
    EXPECT_EQ(scheme_in(name), "none") << name;
  }
}

// Whatever a listed name says is what it gives; no name in the library is read as plain bf16 against its own words.
TEST(CheckpointName, no_alias_with_a_format_is_read_in_another) {
  const ModelCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/models");
  int with_format = 0;
  for (const ModelEntry& entry : catalogue.entries()) {
    for (const std::string& alias : entry.aliases) {
      const CheckpointName parts = parse_checkpoint_name(alias);
      const ResolvedName resolved = catalogue.resolve(alias);
      EXPECT_EQ(resolved.entry, entry.name) << alias;
      if (!parts.format) continue;
      ++with_format;
      const Model model = catalogue.model(alias);
      EXPECT_EQ(facts(model.expert_scheme).weight_bytes < 2, facts(*parts.format->scheme).weight_bytes < 2) << alias;
      EXPECT_EQ(model.served_name(), alias);
    }
  }
  EXPECT_GE(with_format, 5);
}

const ModelCatalogue& library() {
  static const ModelCatalogue all(FORETOKEN_SOURCE_DIR "/data/models");
  return all;
}

TEST(CheckpointName, what_a_format_leaves_out_is_said) {
  EXPECT_THAT(library().model("DeepSeek-R1-W4AFP8").notes.back(), testing::HasSubstr("8-bit activations"));
  EXPECT_THAT(library().model("MiniMaxAI/MiniMax-M3-MXFP8").notes.back(), testing::HasSubstr("32 values"));
}

TEST(CheckpointName, fp4_is_mxfp4_where_the_publisher_means_that) {
  const Model own = library().model("inclusionAI/Ling-3.0-flash-fp4");
  EXPECT_EQ(own.expert_scheme, Scheme::mxfp4_wo);
  EXPECT_EQ(own.scheme, Scheme::bf16);
  EXPECT_EQ(library().model("nvidia/Ling-3.0-flash-NVFP4").expert_scheme, Scheme::nvfp4);
  EXPECT_EQ(library().model("inclusionAI/Ling-3.0-flash-fp8").scheme, Scheme::fp8_block);
}

// So that tensor parallelism may cut its experts anywhere: 1,536 / 8 = 192 is no multiple of a block's 128.
TEST(CheckpointName, fp8_of_glm_has_blocks_since_its_fifth_generation) {
  for (const char* name : {"zai-org/GLM-4.5-FP8", "zai-org/GLM-4.6-FP8", "zai-org/GLM-4.5-Air-FP8", "GLM-4.7-FP8"}) {
    EXPECT_EQ(library().model(name).expert_scheme, Scheme::fp8) << name;
    EXPECT_EQ(cut_scale_blocks(library().model(name), {.tensor = 8}), "") << name;
  }
  EXPECT_EQ(library().model("zai-org/GLM-5-FP8").expert_scheme, Scheme::fp8_block);
  EXPECT_EQ(library().model("Qwen/Qwen3-235B-A22B-FP8").expert_scheme, Scheme::fp8_block);
}

TEST(CheckpointName, nvidias_nvfp4_checkpoints_keep_what_their_lists_exclude) {
  const Model minimax = library().model("nvidia/MiniMax-M2.5-NVFP4");
  EXPECT_EQ(minimax.mixer_scheme(), Scheme::bf16);
  EXPECT_EQ(minimax.expert_scheme, Scheme::nvfp4);
  const Model glm = library().model("nvidia/GLM-5.2-NVFP4");
  EXPECT_EQ(glm.scheme, Scheme::bf16);
  EXPECT_EQ(glm.expert_scheme, Scheme::nvfp4);
  EXPECT_EQ(library().model("nvidia/Kimi-K2.5-NVFP4").scheme, Scheme::nvfp4) << "shared experts too";
  EXPECT_EQ(library().model("nvidia/Kimi-K2.5-NVFP4").mixer_scheme(), Scheme::bf16);
  EXPECT_EQ(library().model("nvidia/Kimi-K2.6-NVFP4").scheme, Scheme::bf16);
  const Model qwen = library().model("nvidia/Qwen3-235B-A22B-NVFP4");
  EXPECT_EQ(qwen.mixer_scheme(), Scheme::nvfp4);
  EXPECT_EQ(library().model("RedHatAI/MiniMax-M2.5-NVFP4").mixer_scheme(), Scheme::nvfp4);
}

TEST(CheckpointName, nvidias_fp4_and_fp8_checkpoints_ask_for_an_fp8_cache) {
  EXPECT_EQ(library().model("nvidia/Llama-3.1-8B-Instruct-FP8").kv_cache_dtype(), DType::fp8);
  EXPECT_EQ(library().model("nvidia/Qwen3-32B-NVFP4").kv_cache_dtype(), DType::fp8);
  EXPECT_EQ(library().model("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8").kv_cache_dtype(), DType::bf16);
}

TEST(CheckpointName, a_name_states_its_billions) {
  EXPECT_DOUBLE_EQ(*stated_billions("Qwen2.5-72B"), 72);
  EXPECT_DOUBLE_EQ(*stated_billions("mixtral-8x7b-v0.1"), 56);
  EXPECT_DOUBLE_EQ(*stated_billions("opt-350m"), 0.35);
  EXPECT_DOUBLE_EQ(*stated_billions("Qwen3.8-2.4T-A95B"), 2400);
  EXPECT_FALSE(stated_billions("DeepSeek-V3"));
  EXPECT_FALSE(stated_billions(""));
}

TEST(CheckpointName, words_that_may_stand_for_another_model_are_known) {
  for (const char* word : {"mini", "VL", "70B", "A3B", "E2B", "v0.2", "Distill", "DSpark", "NVFP44", "fp7"}) {
    EXPECT_TRUE(changes_the_model(word)) << word;
  }
  for (const char* word : {"JP", "202606", "abliterated", "Instruct", "RL", ""}) {
    EXPECT_FALSE(changes_the_model(word)) << word;
  }
}

TEST(CheckpointName, words_of_tuned_checkpoints_are_known) {
  for (const char* word : {"SFT", "rl", "Preview", "0528", "202606", "abliterated"}) {
    EXPECT_TRUE(names_a_tuned_model(word)) << word;
  }
  for (const char* word : {"Banana", "mini", "70B", ""}) EXPECT_FALSE(names_a_tuned_model(word)) << word;
}

}  // namespace foretoken::checkpoint_name_test
