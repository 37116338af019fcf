#include "serving/speculation/speculative_config.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::speculative_config_test {

SpeculativeConfig parse(const std::string& members) {
  return parse_speculative_config("{\"method\": \"eagle3\", \"num_speculative_tokens\": 3" + members + "}", "test");
}

TEST(SpeculativeConfig, reads_what_vllm_users_type) {
  const SpeculativeConfig config = parse(R"(, "model": "head", "draft_tensor_parallel_size": 1,
      "disable_by_batch_size": 32, "synthetic_acceptance_length": 2.5)");
  EXPECT_EQ(config.method->name, "eagle3");
  EXPECT_EQ(config.model, "head");
  const Speculation speculation = config.speculation();
  EXPECT_EQ(speculation.draft_tokens, 3);
  EXPECT_EQ(speculation.verified_tokens, 3);
  EXPECT_EQ(speculation.lookahead_tokens, 3);
  EXPECT_EQ(speculation.most_sequences, 32);
  EXPECT_DOUBLE_EQ(speculation.acceptance.expected_tokens(3), 2.5);
}

TEST(SpeculativeConfig, takes_acceptance_in_any_of_its_forms) {
  const auto expected = [](const std::string& members) { return parse(members).acceptance.value().expected_tokens(3); };
  EXPECT_DOUBLE_EQ(expected(R"(, "synthetic_acceptance_rates": [0.8, 0.5, 0.2])"), 2.5);
  EXPECT_DOUBLE_EQ(expected(R"(, "synthetic_acceptance_rate": 0.5)"), 2.5);
  EXPECT_DOUBLE_EQ(expected(R"(, "acceptance_rate": 0.5)"), 1.875);
  EXPECT_DOUBLE_EQ(expected(R"(, "acceptance_rate": 0.5, "acceptance_decay": 0)"), 1.5);
  EXPECT_DOUBLE_EQ(expected(R"(, "acceptance_distribution": [1, 0, 0, 1])"), 2.5);
  EXPECT_FALSE(parse("").acceptance.has_value());
}

TEST(SpeculativeConfig, verifies_a_tree_of_more_drafts_than_its_depth) {
  const Speculation speculation = parse(R"(, "tree_tokens": 10, "acceptance_rate": 0.5)").speculation();
  EXPECT_EQ(speculation.draft_tokens, 3);
  EXPECT_EQ(speculation.verified_tokens, 10);
}

TEST(SpeculativeConfig, knows_the_methods_of_single_models) {
  const SpeculativeConfig config =
      parse_speculative_config(R"({"method": "deepseek_mtp", "num_speculative_tokens": 1})", "test");
  EXPECT_EQ(config.method->name, "mtp");
  EXPECT_EQ(parse_speculative_config(R"({"model": "small", "num_speculative_tokens": 1})", "test").method->name,
            "draft_model");
}

TEST(SpeculativeConfig, says_what_is_wrong) {
  for (const char* members :
       {R"(, "acceptance_rates": 0.5)", R"(, "acceptance_rate": 1.5)", R"(, "synthetic_acceptance_rates": [0.5])",
        R"(, "synthetic_acceptance_length": 5)", R"(, "acceptance_rate": 0.5, "synthetic_acceptance_rate": 0.5)",
        R"(, "acceptance_decay": 0.5)", R"(, "acceptance_rate": 0.9, "acceptance_spread": 0.2)",
        R"(, "acceptance_rate": 0.5, "acceptance_spread": 0.2, "acceptance_decay": 0.5)", R"(, "tree_tokens": 2)",
        R"(, "acceptance_distribution": [0, 0, 0, 0])"}) {
    EXPECT_THROW(parse(members), InputError) << members;
  }
  EXPECT_THROW(parse_speculative_config(R"({"method": "egle", "num_speculative_tokens": 1})", "test"), InputError);
  EXPECT_THROW(parse_speculative_config(R"({"method": "eagle"})", "test"), InputError);
  EXPECT_THROW(parse_speculative_config("{", "test"), InputError);
}

TEST(SpeculativeConfig, a_block_drafter_has_a_usual_block_and_reads_a_cache_of_its_own) {
  const SpeculativeConfig dspark = parse_speculative_config(R"({"method": "DSPARK", "acceptance_rate": 0.5})", "test");
  EXPECT_EQ(dspark.method->name, "dspark");
  EXPECT_EQ(dspark.num_speculative_tokens, 7);
  EXPECT_EQ(dspark.speculation().lookahead_tokens, 7);
  EXPECT_EQ(parse_speculative_config(R"({"method": "dflash"})", "test").num_speculative_tokens, 15);
  EXPECT_EQ(
      parse_speculative_config(R"({"method": "dspark", "num_speculative_tokens": 5})", "test").num_speculative_tokens,
      5);
}

TEST(SpeculativeConfig, an_assumed_acceptance_carries_its_interval) {
  SpeculativeConfig config = parse_speculative_config(R"({"method": "mtp", "num_speculative_tokens": 3})", "test");
  EXPECT_FALSE(config.acceptance);
  config.assume(usual_acceptance(*config.method, 3));
  const Speculation speculation = config.speculation();
  ASSERT_EQ(speculation.unknown_acceptance.size(), 2U);
  EXPECT_LT(speculation.unknown_acceptance[0].expected_tokens(3), speculation.acceptance.expected_tokens(3));
  EXPECT_GT(speculation.unknown_acceptance[1].expected_tokens(3), speculation.acceptance.expected_tokens(3));
  EXPECT_FALSE(config.acceptance_is_usual) << "somebody measured it";
}

TEST(SpeculativeConfig, eagle_without_a_drafter_is_the_layer_that_a_model_was_trained_with) {
  const auto method = [](const std::string& text, const Model& target) {
    SpeculativeConfig config = parse_speculative_config(text, "test");
    config.use_own_layer_of(target);
    return config.method->name;
  };
  const std::string eagle = R"({"method": "EAGLE", "num_speculative_tokens": 3})";
  Model trained_with_one;
  trained_with_one.draft_layers.emplace_back();
  EXPECT_EQ(method(eagle, trained_with_one), "mtp");
  EXPECT_EQ(method(eagle, Model{}), "eagle");
  EXPECT_EQ(method(R"({"method": "eagle", "model": "head", "num_speculative_tokens": 3})", trained_with_one), "eagle");
  EXPECT_EQ(method(R"({"method": "eagle3", "num_speculative_tokens": 3})", trained_with_one), "eagle3");
}

TEST(SpeculativeConfig, what_is_usual_depends_on_the_texts) {
  const auto usual = [](const char* method, PromptTexts texts) {
    SpeculativeConfig config{.method = &draft_method(method), .num_speculative_tokens = 3};
    config.assume_usual(texts);
    EXPECT_TRUE(config.acceptance_is_usual);
    return config.acceptance->expected_tokens(3);
  };
  EXPECT_GT(usual("mtp", PromptTexts::random), 1.1 * usual("mtp", PromptTexts::natural)) << "models repeat themselves";
  EXPECT_EQ(usual("eagle3", PromptTexts::random), usual("eagle3", PromptTexts::natural));
  EXPECT_GT(usual("eagle3", PromptTexts::code), 1.1 * usual("eagle3", PromptTexts::natural));
}

}  // namespace foretoken::speculative_config_test
