// Tokens of a simulated server: text becomes tokens by a simple rule, and answers are made-up words of one token each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

using TokenId = int32_t;
inline constexpr TokenId token_ids = 1 << 17;  // every id is below
inline constexpr size_t token_bytes = 4;

// One token for each four bytes of UTF-8, the last for what is left. Equal pieces are equal tokens.
void add_tokens(std::string_view text, std::vector<TokenId>& tokens);
// A token that no text gives, as between the messages of a chat.
TokenId special_token(std::string_view name);

// Made-up words for tokens, one each: what the tokens were made from is not known any more.
std::string token_text(std::span<const TokenId> tokens);

// What an answer is made from: equal for equal prompts, seeds and choices, whenever the request comes. The choices of a
// prompt share what is hashed of it.
uint64_t prompt_key(std::span<const TokenId> prompt, uint64_t seed);
uint64_t answer_key(uint64_t prompt_key, int64_t choice);
// The words of an answer from the given one on, each a space and three letters: one token, so that an answer in the
// next prompt of a conversation is the same tokens again.
std::string answer_text(uint64_t key, int64_t first, int64_t count);

// One number for each full block of so many tokens: equal ones hold equal tokens.
std::vector<int64_t> block_numbers(std::span<const TokenId> tokens, int64_t block_tokens);

// Of one direction, from -1 to 1; an embedding made up.
std::vector<float> made_up_vector(uint64_t key, int64_t dimensions);

}  // namespace foretoken
