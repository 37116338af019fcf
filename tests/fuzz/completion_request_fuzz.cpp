// Any body of a request is read, or refused with what was expected.
#include <string>

#include "app/endpoint/completion_request.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const std::string body(as_text(data, size));
  for (const CompletionKind kind :
       {CompletionKind::chat, CompletionKind::text, CompletionKind::embedding, CompletionKind::response}) {
    read_or_refuse([&] {
      const CompletionRequest request = read_completion_request(kind, body);
      const auto choices = static_cast<int64_t>(request.prompts.size()) * request.samples;
      promise(choices >= 1 && choices <= most_choices, "a request has answers");
    });
  }
  read_or_refuse([&] { read_tokenize_request(body); });
  read_or_refuse([&] { read_detokenize_request(body); });
  return 0;
}
