// Any JSON Schema is refused with what was expected, or documents that follow it are made, within their bounds.
#include <algorithm>
#include <string>

#include "app/endpoint/answer_document.h"
#include "app/endpoint/tokens.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const std::string text(as_text(data, size));
  read_or_refuse([&] {
    const Json schema = parse_json(text, "schema");
    const AnswerSchema read = read_answer_schema(JsonView(schema, "schema"));
    promise(read.shortest_bytes() <= longest_schema_document, "documents are bounded");
    read.makes_objects();
    for (const int64_t bytes : {0, 300, 4000}) {
      const AnswerDocument document = make_answer_document(read, size, bytes);
      promise(document.least_bytes() <= std::max(bytes, read.shortest_bytes()), "documents keep their length");
      const int64_t tokens = (document.least_bytes() + 50) / 4;
      std::string words = answer_text(size, 0, tokens);
      document.write_over(words, 0, tokens * 4);
      promise(std::all_of(words.begin(), words.end(), [](char byte) { return byte >= ' ' && byte < 127; }), "ASCII");
      try {
        parse_json(words, "document", {.max_depth = 20000});
      } catch (const InputError&) {
        promise(false, "documents are JSON");
      }
    }
  });
  return 0;
}
