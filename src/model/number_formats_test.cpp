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
  EXPECT_EQ(group(R"("num_bits": 4, "type": "float", "group_size": 16)", inputs).scheme, Scheme::nvfp4);
}

TEST(NumberFormats, nvfp4_weights_without_a_format_of_inputs_are_multiplied_in_16_bits) {
  for (const char* said : {R"("quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
           {"num_bits": 4, "type": "float", "group_size": 16}, "input_activations": null}})",
                           R"("quant_method": "modelopt", "quant_algo": "W4A16_NVFP4")"}) {
    const Model model = quantized(said);
    EXPECT_EQ(model.scheme, Scheme::int4_wo);
    EXPECT_EQ(model.int4_bytes, facts(Scheme::nvfp4).weight_bytes);
    EXPECT_THAT(model.notes, testing::Contains(testing::HasSubstr("multiplied in 16 bits")));
  }
}

TEST(NumberFormats, integer_groups_other_than_128_have_bytes_of_their_own) {
  const auto group = [](const std::string& weights) {
    return quantized(R"("quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights":
                        {"num_bits": 4, "type": "int", )" +
                     weights + "}}}");
  };
  EXPECT_FALSE(group(R"("group_size": 128)").int4_bytes);
  EXPECT_FALSE(group(R"("strategy": "channel")").int4_bytes);
  EXPECT_EQ(group(R"("group_size": 32)").int4_bytes, 0.5 + 2.0 / 32);
  EXPECT_EQ(group(R"("group_size": 32, "symmetric": false)").int4_bytes, 0.5 + 2.5 / 32);
  EXPECT_EQ(quantized(R"("quant_method": "awq", "group_size": 64)").int4_bytes, 0.5 + 2.5 / 64);
  EXPECT_FALSE(quantized(R"("quant_method": "gptq", "bits": 4, "group_size": -1)").int4_bytes);
}

const std::string fp8 =
    R"(, "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}, "input_activations": {"num_bits": 8})";
const std::string nvfp4 =
    R"(, "weights": {"num_bits": 4, "type": "float", "group_size": 16}, "input_activations": {"num_bits": 4})";

// Of groups such as R"("targets": ["Linear"])" + fp8.
std::string groups(const std::string& first, const std::string& second) {
  return R"("quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": {"group_0": {)" +
         first + R"(}, "group_1": {)" + second + "}}";
}

// As unsloth's Qwen3.6 in "mixed-precision".
TEST(NumberFormats, each_config_group_speaks_for_the_modules_it_names) {
  const Model dense = quantized(groups(R"("targets": ["re:.*self_attn\\.(q|k|v|o)_proj$", "re:.*lm_head"])" + fp8,
                                       R"("targets": ["re:.*mlp\\.(gate|up|down)_proj$"])" + nvfp4));
  EXPECT_EQ(dense.mixer_scheme(), Scheme::fp8);
  EXPECT_EQ(dense.scheme, Scheme::nvfp4);
  EXPECT_THAT(dense.notes, testing::Contains(testing::HasSubstr("attention in fp8")));

  const Model of_class =
      quantized(groups(R"("targets": ["re:.*self_attn.*"])" + fp8, R"("targets": ["Linear"])" + nvfp4));
  EXPECT_EQ(of_class.mixer_scheme(), Scheme::fp8);
  EXPECT_EQ(of_class.scheme, Scheme::nvfp4);

  // One matrix of three does not decide for the part.
  const Model one_matrix =
      quantized(groups(R"("targets": ["re:.*down_proj"])" + fp8, R"("targets": ["Linear"])" + nvfp4));
  EXPECT_EQ(one_matrix.scheme, Scheme::nvfp4);
  EXPECT_EQ(one_matrix.mixer_scheme(), Scheme::nvfp4);

  // What no group names is not quantized.
  const Model rest = quantized(
      groups(R"("targets": ["re:.*gate_proj", "re:.*up_proj"])" + nvfp4, R"("targets": ["re:.*down_proj"])" + fp8));
  EXPECT_EQ(rest.scheme, Scheme::nvfp4);
  EXPECT_EQ(rest.mixer_scheme(), Scheme::bf16);

  const Model same =
      quantized(groups(R"("targets": ["re:.*self_attn.*"])" + fp8, R"("targets": ["re:.*mlp.*"])" + fp8));
  EXPECT_EQ(same.scheme, Scheme::fp8);
  EXPECT_FALSE(same.attention_scheme);
  EXPECT_TRUE(same.notes.empty());
}

Model of_layers(int layers, const std::string& members) {
  return parse_model_config(
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
          "vocab_size": 100, "torch_dtype": "bfloat16", "num_hidden_layers": )" +
          std::to_string(layers) + R"(, "quantization_config": {)" + members + "}}",
      "config.json", "test");
}

Model of_experts(const std::string& members, int layers = 4) {
  return parse_model_config(
      R"({"model_type": "qwen2_moe", "hidden_size": 64, "intermediate_size": 128,
          "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100, "num_experts": 8,
          "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64,
          "torch_dtype": "bfloat16", "num_hidden_layers": )" +
          std::to_string(layers) + R"(, "quantization_config": {)" + members + "}}",
      "config.json", "test");
}

// As unsloth's Qwen3.8-27B-NVFP4.
TEST(NumberFormats, a_few_layers_do_not_outvote_the_others) {
  const Model dense = of_layers(
      64, groups(R"("targets": ["re:.*layers\\.(56|57|58|59|60|61|62|63)\\.mlp\\.(gate|up|down)_proj$"])" + fp8,
                 R"("targets": ["re:.*self_attn\\.(q|k|v|o)_proj$", "re:.*mlp\\.(gate|up|down)_proj$"])" + nvfp4));
  EXPECT_EQ(dense.scheme, Scheme::nvfp4);
  EXPECT_EQ(dense.mixer_scheme(), Scheme::nvfp4);

  const Model experts =
      of_experts(groups(R"("targets": ["re:.*layers\\.(38|39)\\.mlp\\.experts\\.\\d+\\.(gate|up|down)_proj$"])" + fp8,
                        R"("targets": ["re:.*mlp\\.experts\\.\\d+\\.(gate|up|down)_proj$"])" + nvfp4),
                 40);
  EXPECT_EQ(experts.expert_scheme, Scheme::nvfp4);
  EXPECT_EQ(experts.scheme, Scheme::bf16);

  const Model listed =
      of_layers(64, groups(R"("targets": ["model.layers.0.mlp.down_proj", "model.layers.1.mlp.down_proj",
                                                          "model.layers.2.mlp.down_proj"])" +
                               fp8,
                           R"("targets": ["Linear"])" + nvfp4));
  EXPECT_EQ(listed.scheme, Scheme::nvfp4);
  EXPECT_EQ(listed.mixer_scheme(), Scheme::nvfp4);

  const Model many = of_layers(
      4, groups(R"("targets": ["re:.*layers\\.(?:0|1|2)\\.mlp.*"])" + fp8, R"("targets": ["re:.*mlp.*"])" + nvfp4));
  EXPECT_EQ(many.scheme, Scheme::fp8) << "three layers of four are most of them";
}

TEST(NumberFormats, of_several_names_for_a_module_the_first_counts) {
  const Model model = of_layers(
      4, groups(R"("targets": ["re:.*mlp.*"])" + nvfp4, R"("targets": ["re:.*layers\\.(0|1|2)\\.mlp.*"])" + fp8));
  EXPECT_EQ(model.scheme, Scheme::nvfp4);
}

TEST(NumberFormats, layers_in_an_alternation_are_no_more_than_those) {
  const Model few = of_layers(
      8, groups(R"("targets": ["re:.*self_attn.*"])" + fp8, R"("targets": ["re:.*layers\\.(6|7)\\.mlp.*"])" + nvfp4));
  EXPECT_EQ(few.scheme, Scheme::bf16);
  EXPECT_EQ(few.mixer_scheme(), Scheme::fp8);
  const Model left = of_layers(8, R"("quant_method": "fp8", "ignore": ["re:.*layers\\.(6|7)\\.self_attn.*"])");
  EXPECT_EQ(left.mixer_scheme(), Scheme::fp8);
}

TEST(NumberFormats, each_layer_has_one_vote_however_many_experts_it_lists) {
  std::string layers;
  for (const char* expert : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
    layers += std::string(R"("model.layers.0.mlp.experts.)") + expert + R"(.up_proj": {"quant_algo": "FP8"}, )";
  }
  for (const char* layer : {"1", "2", "3"}) {
    layers += std::string(R"("model.layers.)") + layer + R"(.mlp.experts.0.up_proj": {"quant_algo": "NVFP4"}, )";
  }
  layers += R"("lm_head": {"quant_algo": "FP8"})";
  EXPECT_EQ(
      of_experts(R"("quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {)" + layers + "}")
          .expert_scheme,
      Scheme::nvfp4);
}

TEST(NumberFormats, regexes_are_read_for_what_they_match) {
  for (const char* attention :
       {R"(re:^(?!mtp\\.).*layers\\.\\d+\\.self_attn\\.(q|k|v|o)_proj$)", R"(re:^(?!(mtp|visual)\\.).*attn.*)",
        R"(re:.*\\.(q|k|v|o)_proj$)", R"(re:.*\\.(?:q|k|v|o)_proj$)"}) {
    const Model model = quantized(groups(std::string(R"("targets": [")") + attention + R"("])" + fp8,
                                         R"("targets": ["re:.*\\.(gate|up|down)_proj$"])" + nvfp4));
    EXPECT_EQ(model.mixer_scheme(), Scheme::fp8) << attention;
    EXPECT_EQ(model.scheme, Scheme::nvfp4) << attention;
  }
  const Model unfinished = quantized(groups(R"("targets": ["re:(?!((", "re:)_proj)(_proj", "re:layers.(5"])" + fp8,
                                            R"("targets": ["Linear"])" + nvfp4));
  EXPECT_EQ(unfinished.scheme, Scheme::nvfp4);
}

TEST(NumberFormats, fused_names_count_as_the_matrices_they_fuse) {
  const Model model = quantized(groups(R"("targets": ["re:.*down_proj", "re:.*o_proj"])" + fp8,
                                       R"("targets": ["re:.*gate_up_proj", "re:.*qkv_proj"])" + nvfp4));
  EXPECT_EQ(model.scheme, Scheme::nvfp4);
  EXPECT_EQ(model.mixer_scheme(), Scheme::nvfp4);
}

TEST(NumberFormats, int4_bytes_are_those_of_one_part) {
  const auto int4 = [](const std::string& group) {
    return R"(, "weights": {"num_bits": 4, "type": "int", "group_size": )" + group + "}";
  };
  const auto with_groups_of = [&](const std::string& attention, const std::string& mlp) {
    return quantized(
        groups(R"("targets": ["re:.*self_attn.*"])" + int4(attention), R"("targets": ["Linear"])" + int4(mlp)));
  };
  EXPECT_FALSE(with_groups_of("32", "128").int4_bytes);
  EXPECT_EQ(with_groups_of("128", "32").int4_bytes, 0.5 + 2.0 / 32);
}

TEST(NumberFormats, groups_that_name_experts_speak_for_the_routed_ones_alone) {
  const Model model = of_experts(R"("quant_method": "compressed-tensors", "config_groups": {
      "group_0": {"targets": ["re:.*self_attn.*", "re:.*shared_expert\\..*"],
                  "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
                  "input_activations": {"num_bits": 8}},
      "group_1": {"targets": ["re:.*mlp\\.experts\\..*"],
                  "weights": {"num_bits": 4, "type": "float", "group_size": 16},
                  "input_activations": {"num_bits": 4}}})");
  EXPECT_EQ(model.mixer_scheme(), Scheme::fp8);
  EXPECT_EQ(model.scheme, Scheme::fp8);
  EXPECT_EQ(model.expert_scheme, Scheme::nvfp4);
}

TEST(NumberFormats, modelopts_mixed_precision_is_read_layer_by_layer) {
  std::string layers;
  for (const char* layer : {"0", "1", "2", "3", "4"}) {  // 4: a draft layer
    const std::string name = std::string(R"("model.layers.)") + layer;
    layers += name + R"(.self_attn.q_proj": {"quant_algo": "FP8"}, )";
    layers += name + R"(.mlp.experts.0.up_proj": {"quant_algo": "NVFP4", "group_size": 16}, )";
  }
  layers += R"("model.layers.0.mlp.shared_expert.up_proj": {"quant_algo": "FP8"})";
  const Model model = of_experts(
      R"("quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {)" + layers + "}");
  EXPECT_EQ(model.mixer_scheme(), Scheme::fp8);
  EXPECT_EQ(model.expert_scheme, Scheme::nvfp4);
  EXPECT_EQ(model.scheme, Scheme::bf16) << "one layer of four is not most of them";
  EXPECT_THAT(model.notes, testing::Contains(testing::HasSubstr("routed experts in nvfp4")));

  const Model silent = of_experts(R"("quant_method": "modelopt", "quant_algo": "MIXED_PRECISION")");
  EXPECT_EQ(silent.expert_scheme, Scheme::bf16);
  EXPECT_THAT(silent.notes, testing::Contains(testing::HasSubstr("without quantized_layers")));
}

TEST(NumberFormats, a_checkpoint_may_ask_for_an_fp8_cache) {
  const std::string modelopt = R"("quant_method": "modelopt", "quant_algo": "FP8", )";
  EXPECT_EQ(quantized(modelopt + R"("kv_cache_quant_algo": "FP8")").kv_cache_dtype(), DType::fp8);
  EXPECT_THAT(quantized(modelopt + R"("kv_cache_quant_algo": "FP8")").notes,
              testing::Contains(testing::HasSubstr("{kv_cache_dtype} bf16 overrides it")));
  EXPECT_EQ(quantized(modelopt + R"("kv_cache_quant_algo": null)").kv_cache_dtype(), DType::bf16);
  const std::string scheme = R"("quant_method": "fp8", "kv_cache_scheme": )";
  EXPECT_EQ(quantized(scheme + R"({"num_bits": 8, "type": "float", "dynamic": false})").kv_cache_dtype(), DType::fp8);
  EXPECT_EQ(quantized(scheme + R"({"num_bits": 8, "type": "int"})").kv_cache_dtype(), DType::bf16);
  EXPECT_EQ(quantized(scheme + "null").kv_cache_dtype(), DType::bf16);
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

TEST(NumberFormats, names_of_encoders_and_draft_layers_say_nothing_of_the_layers) {
  for (const char* name : {"model.visual.blocks.3.attn.qkv", "mtp.layers.0.self_attn.q_proj",
                           "model.layers.4.self_attn.q_proj", "vision_tower.layers.0.self_attn.q_proj"}) {
    const Model model = of_experts(std::string(R"("quant_method": "fp8", "ignored_layers": [")") + name + R"("])");
    EXPECT_EQ(model.mixer_scheme(), Scheme::fp8) << name;
  }
  const Model gate =
      of_experts(R"("quant_method": "fp8", "ignore": ["re:.*self_attn.*", "model.layers.3.mlp.shared_expert_gate"])");
  EXPECT_EQ(gate.mixer_scheme(), Scheme::bf16);
  EXPECT_EQ(gate.scheme, Scheme::fp8) << "shared experts are quantized";
}

TEST(NumberFormats, attention_is_left_alone_where_half_of_the_layers_are) {
  const std::string start = R"("quant_method": "fp8", "ignore": ["model.layers.0.self_attn*")";
  EXPECT_EQ(of_experts(start + "]").mixer_scheme(), Scheme::fp8);
  EXPECT_EQ(of_experts(start + R"(, "model.layers.0.self_attn.q_proj"])").mixer_scheme(), Scheme::fp8);
  EXPECT_EQ(of_experts(start + R"(, "model.layers.2.self_attn*"])").mixer_scheme(), Scheme::bf16);
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
