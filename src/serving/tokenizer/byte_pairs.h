// Byte-pair encoding, the model of nearly all tokenizers of language models: a word starts as its characters, and the
// pair that stands first in a list is joined until none is left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"

namespace foretoken {

class BytePairs {
 public:
  // The "model" of a tokenizer.json. InputError for one of another type.
  static BytePairs parse(const JsonView& model);

  int64_t tokens(std::string_view word) const;

 private:
  struct Join {
    uint32_t rank = 0;
    int32_t joined = 0;
  };
  std::vector<int32_t> characters(std::string_view word) const;
  void add_unknown(std::string_view character, std::vector<int32_t>& symbols) const;

  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<uint64_t, Join> joins_;  // by both ids
  bool bytes_for_unknown_ = false, whole_words_first_ = false, joins_unknown_ = false, has_unknown_ = false;
};

}  // namespace foretoken
