// Any bytes are either a config whose drafts are accepted with sane chances, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "serving/speculation/speculative_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const SpeculativeConfig config = parse_speculative_config(as_text(data, size), "input");
    if (!config.acceptance) return 0;
    const Speculation speculation = config.speculation();
    const double tokens = speculation.acceptance.expected_tokens(speculation.draft_tokens);
    promise(tokens >= 1 && tokens <= static_cast<double>(speculation.draft_tokens) + 1 + 1e-9,
            "a verification yields one token to all of them");
    promise(speculation.verified_tokens >= speculation.draft_tokens, "a tree holds a chain");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
