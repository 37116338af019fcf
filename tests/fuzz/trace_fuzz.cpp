// Any bytes are either a trace in order of arrival, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "serving/load/trace.h"

namespace {

using namespace foretoken;

void read(const std::string& text, const std::string& name) {
  try {
    const auto trace = trace_from_text(text, name);
    Picoseconds last = 0;
    int64_t requests = 0;
    while (const auto arrival = trace->next_arrival()) {
      const Request request = trace->next();
      promise(request.arrival == *arrival && request.arrival >= last, "requests come in order of arrival");
      promise(request.id == requests++, "requests are numbered");
      promise(request.input_tokens >= 0 && request.output_tokens >= 0, "no negative tokens");
      promise(
          request.prefix_blocks.empty() ||
              static_cast<int64_t>(request.prefix_blocks.size()) * request.prefix_block_tokens <= request.input_tokens,
          "blocks lie within the prompt");
      last = request.arrival;
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(as_text(data, size));
  read(text, "trace.csv");
  read(text, "trace.jsonl");
  return 0;
}
