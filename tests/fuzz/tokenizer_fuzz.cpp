// Any text is either a tokenizer that counts every other text, or an InputError. A line break ends the tokenizer.
#include "base/error.h"
#include "fuzz.h"
#include "serving/tokenizer/token_counter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const std::string_view input = as_text(data, size);
  const size_t end = std::min(input.find('\n'), input.size());
  try {
    TokenCounter counter = TokenCounter::parse(input.substr(0, end), "input");
    // Texts come from JSON, whose reader refuses broken UTF-8.
    for (const std::string_view text : {"", "it's 12 o'clock", "\xc3\xa4 \xe6\x97\xa5\xf0\x9f\x98\x80\n\n  x"}) {
      const int64_t tokens = counter.answer_tokens(text);
      promise(tokens >= 0 && counter.answer_tokens(text) == tokens, "a count does not change");
      promise(counter.prompt_tokens(text) >= tokens, "a prompt has no fewer tokens");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
