#include "app/endpoint/tokens.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace foretoken::tokens_test {

std::vector<TokenId> tokens_of(std::string_view text) {
  std::vector<TokenId> tokens;
  add_tokens(text, tokens);
  return tokens;
}

TEST(Tokens, are_four_bytes_of_text_each) {
  EXPECT_TRUE(tokens_of("").empty());
  EXPECT_EQ(tokens_of("abcd").size(), 1U);
  EXPECT_EQ(tokens_of("abcde").size(), 2U);
  const std::vector<TokenId> tokens = tokens_of("abcdabcdabcx");
  EXPECT_EQ(tokens[0], tokens[1]);
  EXPECT_NE(tokens[1], tokens[2]);
}

TEST(Tokens, of_no_text_are_those_between_messages) {
  const TokenId special = special_token("assistant");
  EXPECT_LT(special, token_ids);
  for (const TokenId token : tokens_of("assistant, a text of some length that ends somewhere"))
    EXPECT_LT(token, special);
}

TEST(AnswerText, is_the_same_in_any_pieces_and_gives_a_token_for_each_word) {
  const uint64_t key = answer_key(prompt_key(tokens_of("a prompt"), 7), 0);
  const std::string whole = answer_text(key, 0, 100);
  EXPECT_EQ(answer_text(key, 0, 33) + answer_text(key, 33, 1) + answer_text(key, 34, 66), whole);
  EXPECT_EQ(tokens_of(whole).size(), 100U);
}

TEST(AnswerText, differs_between_prompts_seeds_and_choices) {
  const auto text = [](std::string_view prompt, uint64_t seed, int64_t choice) {
    return answer_text(answer_key(prompt_key(tokens_of(prompt), seed), choice), 0, 10);
  };
  EXPECT_EQ(text("a", 1, 0), text("a", 1, 0));
  EXPECT_NE(text("a", 1, 0), text("b", 1, 0));
  EXPECT_NE(text("a", 1, 0), text("a", 2, 0));
  EXPECT_NE(text("a", 1, 0), text("a", 1, 1));
}

TEST(BlockNumbers, are_those_of_full_blocks_and_equal_exactly_while_tokens_are) {
  std::vector<TokenId> one(50), other;
  for (size_t i = 0; i < one.size(); ++i) one[i] = static_cast<TokenId>(i);
  other = one;
  other[20] = 99;
  const std::vector<int64_t> a = block_numbers(one, 16), b = block_numbers(other, 16);
  ASSERT_EQ(a.size(), 3U);
  EXPECT_EQ(a[0], b[0]);
  EXPECT_NE(a[1], b[1]);
  EXPECT_EQ(a[2], b[2]);
}

}  // namespace foretoken::tokens_test
