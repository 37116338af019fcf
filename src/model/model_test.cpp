#include "model/model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/family.h"
#include "model/model_config.h"
#include "model/weights.h"

namespace foretoken::model_test {

using testing::HasSubstr;

Model parse(const std::string& text) {
  return parse_model_config(text, "config.json", "test/model");
}

std::string complaint(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(no error)";
}

// A small llama with one member replaced or added.
std::string llama_with(const std::string& member) {
  return R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "vocab_size": 100, )" +
         member + "}";
}

const Attention& attention_of(const Model& model, size_t layer) {
  return std::get<Attention>(model.layers[layer].mixer);
}

TEST(ModelConfig, absent_kv_heads_are_as_many_as_heads_and_absent_head_dim_divides_the_width) {
  const Model model = parse(llama_with(R"("torch_dtype": "float16")"));
  EXPECT_EQ(model.layers.size(), 2u);
  EXPECT_EQ(attention_of(model, 0).kv_heads, 4);
  EXPECT_EQ(attention_of(model, 0).head_dim, 16);
  EXPECT_EQ(model.dtype, DType::fp16);
  EXPECT_EQ(model.scheme, Scheme::fp16);
  EXPECT_EQ(model.name, "test/model");
  EXPECT_EQ(model.family, "llama");
}

TEST(ModelConfig, a_present_head_dim_wins) {
  EXPECT_EQ(attention_of(parse(llama_with(R"("head_dim": 32)")), 0).head_dim, 32);
}

TEST(ModelConfig, a_null_counts_as_absent) {
  const Model model = parse(llama_with(R"("head_dim": null, "num_key_value_heads": null)"));
  EXPECT_EQ(attention_of(model, 0).head_dim, 16);
  EXPECT_EQ(attention_of(model, 0).kv_heads, 4);
}

TEST(ModelConfig, heads_that_do_not_divide_the_width_need_a_head_dim) {
  std::string text = llama_with(R"("tie_word_embeddings": true)");
  text.replace(text.find(": 4,"), 4, ": 5,");
  EXPECT_THAT(complaint(text), HasSubstr("num_attention_heads = 5"));
  EXPECT_THAT(complaint(text), HasSubstr("head_dim"));
}

TEST(ModelConfig, kv_heads_must_divide_the_heads) {
  EXPECT_THAT(complaint(llama_with(R"("num_key_value_heads": 3)")), HasSubstr("num_key_value_heads = 3"));
}

TEST(ModelConfig, a_missing_key_is_named) {
  EXPECT_THAT(complaint(R"({"model_type": "llama", "hidden_size": 64})"), HasSubstr("num_attention_heads"));
  EXPECT_THAT(complaint(R"({"model_type": "gpt2", "vocab_size": 5})"), HasSubstr("n_embd"));
  EXPECT_THAT(complaint(R"({"model_type": "t5", "vocab_size": 5})"), HasSubstr("d_model"));
}

TEST(ModelConfig, broken_numbers_are_refused_with_their_path) {
  for (const char* value :
       {"-1", "0", "1e30", "1000000000000000000000000000000", "4096.5", "\"4096\"", "true", "[64]", "{}"}) {
    std::string text = llama_with(R"("tie_word_embeddings": true)");
    text.replace(text.find("100"), 3, value);
    EXPECT_THAT(complaint(text), HasSubstr("vocab_size")) << value;
  }
  EXPECT_THAT(complaint(R"({"model_type": "llama", "hidden_size": NaN})"), HasSubstr("valid JSON"));
}

TEST(ModelConfig, a_number_of_layers_that_would_fill_the_memory_is_refused) {
  std::string text = llama_with(R"("tie_word_embeddings": true)");
  text.replace(text.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 9000000");
  EXPECT_THAT(complaint(text), HasSubstr("num_hidden_layers = 9000000"));
}

TEST(ModelConfig, wrong_types_of_flags_and_words_are_refused) {
  EXPECT_THAT(complaint(llama_with(R"("attention_bias": 1)")), HasSubstr("attention_bias"));
  EXPECT_THAT(complaint(llama_with(R"("torch_dtype": 16)")), HasSubstr("torch_dtype"));
  EXPECT_THAT(complaint(llama_with(R"("torch_dtype": "bfloat17")")), HasSubstr("did you mean"));
  EXPECT_THAT(complaint(R"({"model_type": 7})"), HasSubstr("model_type"));
  EXPECT_THAT(complaint(R"({"model_type": "llama", "text_config": 7})"), HasSubstr("text_config"));
}

TEST(ModelConfig, a_document_that_is_no_object_or_is_empty_or_deep_is_refused) {
  EXPECT_THAT(complaint("[]"), HasSubstr("config.json"));
  EXPECT_THAT(complaint("3"), HasSubstr("object"));
  EXPECT_THAT(complaint("{}"), HasSubstr("model_type"));
  EXPECT_THAT(complaint(""), HasSubstr("empty"));
  EXPECT_THAT(complaint(std::string(5000, '[')), HasSubstr("nested"));
}

TEST(ModelConfig, an_unknown_family_names_the_nearest_one_and_the_keys_it_lacks) {
  const std::string text = complaint(R"({"model_type": "qwen9", "hidden_size": 64, "vocab_size": 5})");
  EXPECT_THAT(text, HasSubstr("model_type = qwen9"));
  EXPECT_THAT(text, HasSubstr("did you mean qwen"));
  EXPECT_THAT(text, HasSubstr("lacks intermediate_size, num_hidden_layers, num_attention_heads"));
  EXPECT_THAT(text, testing::Not(HasSubstr("lacks hidden_size")));
}

TEST(ModelConfig, an_unknown_family_with_all_common_keys_says_how_to_go_on) {
  std::string text = llama_with(R"("num_key_value_heads": 4, "head_dim": 16, "max_position_embeddings": 32)");
  text.replace(text.find("llama"), 5, "zzzzzzz");
  EXPECT_THAT(complaint(text), HasSubstr("set model_type to llama"));
}

TEST(ModelConfig, the_architecture_decides_where_model_type_is_absent_or_unknown) {
  std::string text = llama_with(R"("architectures": ["LlamaForCausalLM"])");
  text.replace(text.find("\"model_type\": \"llama\", "), 23, "");
  EXPECT_EQ(parse(text).family, "llama");
  EXPECT_EQ(find_family("Qwen3_5MoeForConditionalGeneration"), find_family("qwen3_5_moe"));
  EXPECT_EQ(find_family("GPT2LMHeadModel"), find_family("gpt2"));
  EXPECT_EQ(find_family("NoSuchForCausalLM"), nullptr);
}

TEST(ModelConfig, an_unknown_wrapper_is_read_through_its_text_config) {
  const Model model = parse(R"({"model_type": "llava_xyz", "torch_dtype": "bfloat16", "text_config": )" +
                            llama_with(R"("tie_word_embeddings": true)") + "}");
  EXPECT_EQ(model.family, "llama");
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.dtype, DType::bf16);
}

TEST(ModelConfig, a_nested_gemma_3_reads_like_a_flat_one) {
  const std::string inside =
      R"("hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024)";
  const Model nested =
      parse(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", )" + inside + "}}");
  const Model flat = parse(R"({"model_type": "gemma3_text", "num_attention_heads": 8, "num_key_value_heads": 4,
                              "head_dim": 256, "vocab_size": 262208, "sliding_window_pattern": 6, )" +
                           inside + "}");
  EXPECT_EQ(nested.layers, flat.layers);
  EXPECT_EQ(count_parameters(nested).total, count_parameters(flat).total);
  EXPECT_TRUE(nested.tied_embeddings);
  EXPECT_FALSE(nested.notes.empty()) << "publisher's defaults are worth a note";
  EXPECT_EQ(attention_of(flat, 4).window, 1024);
  EXPECT_EQ(attention_of(flat, 5).window, 0);
}

TEST(ModelConfig, qwen2_has_biases_without_a_key_and_llama_only_with_one) {
  std::string text = llama_with(R"("use_sliding_window": false)");
  EXPECT_FALSE(attention_of(parse(text), 0).qkv_bias);
  text.replace(text.find("llama"), 5, "qwen2");
  EXPECT_TRUE(attention_of(parse(text), 0).qkv_bias);
  EXPECT_FALSE(attention_of(parse(text), 0).output_bias);
}

TEST(ModelConfig, the_first_qwen_halves_the_width_only_of_the_publishers_file) {
  std::string text = llama_with(R"("tie_word_embeddings": false)");
  text.replace(text.find("llama"), 5, "qwen");
  EXPECT_EQ(std::get<Mlp>(parse(text).layers[0].feed_forward).width, 128);
  text.replace(text.find("\"tie"), 1, "\"kv_channels\": 16, \"");
  EXPECT_EQ(std::get<Mlp>(parse(text).layers[0].feed_forward).width, 64);
}

TEST(ModelConfig, more_experts_per_token_than_experts_are_refused) {
  std::string text = llama_with(R"("num_local_experts": 4, "num_experts_per_tok": 5)");
  text.replace(text.find("llama"), 5, "mixtral");
  EXPECT_THAT(complaint(text), HasSubstr("num_experts_per_tok = 5"));
}

TEST(ModelConfig, a_layer_list_that_is_too_short_or_misspelt_is_refused) {
  const std::string start = R"("sliding_window": 8, "layer_types": )";
  std::string text = llama_with(start + R"(["full_attention"])");
  text.replace(text.find("llama"), 5, "mistral");
  EXPECT_THAT(complaint(text), HasSubstr("2 layers"));
  text = llama_with(start + R"(["full_attention", "half_attention"])");
  text.replace(text.find("llama"), 5, "mistral");
  EXPECT_THAT(complaint(text), HasSubstr("layer_types[1]"));
}

TEST(ModelConfig, a_directory_is_read_with_the_quantization_beside_it) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "foretoken_model_directory";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << llama_with(R"("torch_dtype": "bfloat16")");
  EXPECT_EQ(read_model_config(folder).scheme, Scheme::bf16);
  std::ofstream(folder / "hf_quant_config.json")
      << R"({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}})";
  EXPECT_EQ(read_model_config(folder).scheme, Scheme::fp8);
  EXPECT_EQ(read_model_config(folder).name, folder.string());
  std::filesystem::remove_all(folder);
  EXPECT_THROW(read_model_config(folder), InputError);
}

TEST(ModelConfig, every_family_refuses_an_empty_config_and_one_full_of_nonsense) {
  for (const std::string& type : known_model_types()) {
    EXPECT_THROW(parse(R"({"model_type": ")" + type + R"("})"), InputError) << type;
    EXPECT_THROW(parse(R"({"model_type": ")" + type + R"(", "hidden_size": -5, "n_embd": -5, "d_model": -5})"),
                 InputError)
        << type;
  }
}

TEST(ModelConfig, a_model_with_only_bidirectional_attention_is_an_encoder) {
  const Model bert =
      parse(R"({"model_type": "bert", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                              "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 32})");
  EXPECT_TRUE(bert.is_encoder_only());
  EXPECT_TRUE(std::any_of(bert.notes.begin(), bert.notes.end(), [](const std::string& note) {
    return note.find("head is counted except in embedding tasks") != std::string::npos;
  }));
  EXPECT_FALSE(parse(llama_with(R"("bias": false)")).is_encoder_only());
}

}  // namespace foretoken::model_test
