#include "app/endpoint/tokens.h"

#include "base/random.h"

namespace foretoken {
namespace {

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t state = a ^ (b * 0x9e3779b97f4a7c15U);
  return splitmix64(state);
}

uint64_t content_hash(std::span<const TokenId> tokens) {
  uint64_t hash = tokens.size();
  for (const TokenId token : tokens) hash = mixed(hash, static_cast<uint64_t>(token));
  return hash;
}

constexpr TokenId text_tokens = token_ids - 1024;  // ids above are of no text

}  // namespace

void add_tokens(std::string_view text, std::vector<TokenId>& tokens) {
  for (size_t at = 0; at < text.size(); at += token_bytes) {
    tokens.push_back(static_cast<TokenId>(fnv1a(text.substr(at, token_bytes)) % text_tokens));
  }
}

TokenId special_token(std::string_view name) {
  return text_tokens + static_cast<TokenId>(fnv1a(name) % (token_ids - text_tokens));
}

uint64_t prompt_key(std::span<const TokenId> prompt, uint64_t seed) {
  return mixed(content_hash(prompt), seed);
}

uint64_t answer_key(uint64_t prompt_key, int64_t choice) {
  return mixed(prompt_key, static_cast<uint64_t>(choice));
}

std::string answer_text(uint64_t key, int64_t first, int64_t count) {
  constexpr std::string_view consonants = "bcdfghjklmnprstvwxyz", vowels = "aeiou";
  std::string text;
  text.reserve(token_bytes * static_cast<size_t>(count));
  for (int64_t i = first; i < first + count; ++i) {
    const uint64_t drawn = mixed(key, static_cast<uint64_t>(i));
    text += ' ';
    text += consonants[(drawn >> 40) % consonants.size()];
    text += vowels[(drawn >> 20) % vowels.size()];
    text += consonants[drawn % consonants.size()];
  }
  return text;
}

std::string token_text(std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += answer_text(static_cast<uint64_t>(token), 0, 1);
  return text;
}

std::vector<int64_t> block_numbers(std::span<const TokenId> tokens, int64_t block_tokens) {
  const auto each = static_cast<size_t>(block_tokens);
  std::vector<int64_t> numbers;
  for (size_t at = 0; at + each <= tokens.size(); at += each) {
    numbers.push_back(static_cast<int64_t>(content_hash(tokens.subspan(at, each))));
  }
  return numbers;
}

std::vector<float> made_up_vector(uint64_t key, int64_t dimensions) {
  std::vector<float> values;
  RandomStream stream(key, "embedding");
  for (int64_t i = 0; i < dimensions; ++i) values.push_back(static_cast<float>(stream.uniform(-1, 1)));
  return values;
}

}  // namespace foretoken
