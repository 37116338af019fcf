#include "model/checkpoint_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/catalogue.h"

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
                                                       {"DeepSeek-R1-W4AFP8", "not simulated"}};
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
      EXPECT_EQ(facts(model.scheme).weight_bytes < 2, facts(*parts.format->scheme).weight_bytes < 2) << alias;
      EXPECT_EQ(model.served_name(), alias);
    }
  }
  EXPECT_GE(with_format, 5);
}

}  // namespace foretoken::checkpoint_name_test
