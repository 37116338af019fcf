#include "model/number_formats.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/model_config.h"

namespace foretoken::number_formats_test {

Model with(const std::string& members) {
  return parse_model_config(
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
                               "num_attention_heads": 4, "vocab_size": 100, )" +
          members + "}",
      "config.json", "test");
}

Model quantized(const std::string& members) {
  return with(R"("torch_dtype": "bfloat16", "quantization_config": {)" + members + "}");
}

TEST(NumberFormats, dtype_is_read_under_either_key_and_assumed_with_a_note) {
  EXPECT_EQ(with(R"("dtype": "float16")").dtype, DType::fp16);
  EXPECT_EQ(with(R"("torch_dtype": "torch.float32")").scheme, Scheme::fp32);
  EXPECT_TRUE(with(R"("dtype": "float16")").notes.empty());
  EXPECT_EQ(with(R"("bias": false)").dtype, DType::bf16);
  EXPECT_EQ(with(R"("bias": false)").notes.size(), 1u);
}

TEST(NumberFormats, fp8_is_by_block_where_a_block_size_is_given) {
  EXPECT_EQ(quantized(R"("quant_method": "fp8", "weight_block_size": [128, 128])").scheme, Scheme::fp8_block);
  EXPECT_EQ(quantized(R"("quant_method": "fp8")").scheme, Scheme::fp8);
  EXPECT_EQ(quantized(R"("quant_method": "fp8")").expert_scheme, Scheme::fp8);
  EXPECT_EQ(quantized(R"("quant_method": "fp8")").dtype, DType::bf16);
}

TEST(NumberFormats, mxfp4_quantizes_the_experts_only) {
  const Model model = quantized(R"("quant_method": "mxfp4")");
  EXPECT_EQ(model.scheme, Scheme::bf16);
  EXPECT_EQ(model.expert_scheme, Scheme::mxfp4_wo);
}

TEST(NumberFormats, gptq_and_awq_keep_weights_in_four_or_eight_bits) {
  EXPECT_EQ(quantized(R"("quant_method": "gptq", "bits": 4)").scheme, Scheme::int4_wo);
  EXPECT_EQ(quantized(R"("quant_method": "gptq", "bits": 8)").scheme, Scheme::int8_wo);
  EXPECT_EQ(quantized(R"("quant_method": "awq")").scheme, Scheme::int4_wo);
  EXPECT_THROW(quantized(R"("quant_method": "gptq", "bits": 3)"), InputError);
}

TEST(NumberFormats, compressed_tensors_groups_say_what_is_stored) {
  const auto group = [](const std::string& weights, const std::string& more = "") {
    return quantized(R"("quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {)" + weights +
                     "}" + more + "}}");
  };
  const std::string inputs = R"(, "input_activations": {"num_bits": 8})";
  EXPECT_EQ(group(R"("num_bits": 8, "type": "float", "strategy": "channel")", inputs).scheme, Scheme::fp8);
  EXPECT_EQ(group(R"("num_bits": 8, "type": "int")", inputs).scheme, Scheme::int8);
  EXPECT_EQ(group(R"("num_bits": 8, "type": "int")").scheme, Scheme::int8_wo);
  EXPECT_EQ(group(R"("num_bits": 4, "type": "int", "group_size": 128)").scheme, Scheme::int4_wo);
  EXPECT_EQ(group(R"("num_bits": 4, "type": "float", "group_size": 32)").scheme, Scheme::mxfp4_wo);
  EXPECT_EQ(group(R"("num_bits": 4, "type": "float", "group_size": 16)").scheme, Scheme::nvfp4);
}

TEST(NumberFormats, compressed_tensors_without_detail_keeps_the_dtype_and_says_so) {
  const Model model = quantized(R"("quant_method": "compressed-tensors")");
  EXPECT_EQ(model.scheme, Scheme::bf16);
  ASSERT_EQ(model.notes.size(), 1u);
  EXPECT_THAT(model.notes[0], testing::HasSubstr("{quantization}"));
}

TEST(NumberFormats, attention_left_alone_keeps_the_models_dtype_there) {
  const Model model = quantized(R"("quant_method": "fp8", "modules_to_not_convert": ["model.layers.*.self_attn"])");
  EXPECT_EQ(model.scheme, Scheme::fp8);
  EXPECT_EQ(model.mixer_scheme(), Scheme::bf16);
  EXPECT_EQ(model.expert_scheme, Scheme::fp8);
}

TEST(NumberFormats, shared_experts_left_alone_too_means_only_routed_experts_are_quantized) {
  const Model model =
      quantized(R"("quant_method": "fp8", "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"])");
  EXPECT_EQ(model.scheme, Scheme::bf16);
  EXPECT_EQ(model.mixer_scheme(), Scheme::bf16);
  EXPECT_EQ(model.expert_scheme, Scheme::fp8);
}

TEST(NumberFormats, a_norm_or_one_projection_left_alone_is_not_attention_left_alone) {
  for (const char* name : {"model.layers.30.self_attn.kv_a_layernorm", "model.layers.0.self_attn.o_proj",
                           "model.layers.3.self_attn.kv_b_proj", "lm_head"}) {
    const Model model = quantized(std::string(R"("quant_method": "fp8", "ignored_layers": [")") + name + R"("])");
    EXPECT_EQ(model.mixer_scheme(), Scheme::fp8) << name;
    EXPECT_EQ(model.scheme, Scheme::fp8) << name;
  }
  const Model model = quantized(R"("quant_method": "fp8", "ignored_layers": ["model.layers.0.self_attn.q_proj"])");
  EXPECT_EQ(model.mixer_scheme(), Scheme::bf16);
}

TEST(NumberFormats, modelopt_names_its_algorithm) {
  EXPECT_EQ(quantized(R"("quant_method": "modelopt", "quant_algo": "NVFP4")").scheme, Scheme::nvfp4);
  EXPECT_THROW(quantized(R"("quant_method": "modelopt", "quant_algo": "FP3")"), InputError);
}

TEST(NumberFormats, an_unknown_method_is_refused_with_the_nearest) {
  try {
    quantized(R"("quant_method": "gtpq")");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("quantization_config.quant_method = \"gtpq\""));
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean gptq?"));
  }
}

}  // namespace foretoken::number_formats_test
