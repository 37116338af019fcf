// How a tokenizer prepares a text before it looks words up: changes to the text (the "normalizer" of a tokenizer.json),
// then cuts into words (its "pre_tokenizer").
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace foretoken {

using TextChange = std::function<std::string(std::string text)>;

// NFC leaves the text as it is: what people type and datasets hold nearly always is in that form.
TextChange text_change(const JsonView& normalizer);

struct TextPieces {
  std::vector<std::string> pieces;
  bool starts_text = false;  // the first piece is the start of the whole text
};

using TextCut = std::function<TextPieces(TextPieces text)>;

TextCut text_cut(const JsonView& pre_tokenizer);

}  // namespace foretoken
