// How many tokens a text has for one model, by its tokenizer.json (the format of Hugging Face's tokenizers).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serving/tokenizer/byte_pairs.h"
#include "serving/tokenizer/text_pieces.h"

namespace foretoken {

class TokenCounter {
 public:
  // InputError for a file that is none, or a kind of tokenizer that is not counted here.
  static TokenCounter parse(std::string_view text, const std::string& source);
  static TokenCounter read(const std::filesystem::path& file);

  int64_t answer_tokens(std::string_view text);
  // With those that the tokenizer puts around a prompt, such as the token that begins a text.
  int64_t prompt_tokens(std::string_view text) { return answer_tokens(text) + around_prompt_; }

 private:
  struct Special {
    std::string text;
    bool takes_space_before = false, takes_space_after = false;
  };
  explicit TokenCounter(BytePairs model) : model_(std::move(model)) {}
  void read_specials(const JsonView& added);
  const Special* special_at(std::string_view text) const;
  int64_t tokens_between(std::string_view text, bool starts_text);
  int64_t word_tokens(const std::string& word);

  BytePairs model_;
  std::vector<TextChange> changes_;  // none or one
  std::vector<TextCut> cuts_;
  std::vector<std::vector<Special>> specials_;  // by their first byte, long ones first
  int64_t around_prompt_ = 0;
  std::unordered_map<std::string, int64_t> counted_;
};

}  // namespace foretoken
