// Any bytes of a server are an answer with its events or an error, and the same ones however they are split.
#include <string>

#include "app/observe/completion_stream.h"
#include "app/observe/response_parser.h"
#include "fuzz.h"

namespace foretoken::server_answer_fuzz_test {

struct Reading {
  std::string body, error, document;
  int status = 0;
  int64_t events = 0;
  bool complete = false, done = false, refused = false;
  bool operator==(const Reading&) const = default;
};

// What follows the answer is left alone, so nothing is said about it.
Reading read(std::string_view bytes, size_t piece) {
  HttpResponseParser parser;
  CompletionStream stream;
  Reading reading;
  try {
    for (size_t at = 0; at < bytes.size() && !parser.is_complete(); at += piece) {
      parser.feed(bytes.substr(at, piece), [&](std::string_view part) {
        reading.body += part;
        reading.events += stream.take(part, parser.is_event_stream());
      });
    }
    if (!parser.is_complete()) parser.closed();
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
    reading.refused = true;
  }
  // Where a body breaks off in an error, how much of the last piece was handed on depends on the piece.
  if (reading.refused) return {.refused = true};
  reading.status = parser.status();
  reading.complete = parser.is_complete();
  reading.done = stream.is_done();
  reading.error = stream.error();
  reading.document = stream.document();
  promise(reading.events == stream.text_events(), "every event is counted once");
  return reading;
}

}  // namespace foretoken::server_answer_fuzz_test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  using namespace foretoken::server_answer_fuzz_test;
  const std::string_view bytes = as_text(data, size);
  const Reading whole = read(bytes, size + 1);
  promise(read(bytes, 1) == whole, "single bytes give the same answer");
  promise(read(bytes, 7) == whole, "pieces give the same answer");
  promise(server_error_text(bytes).size() <= 1000, "the words of an error are few");
  return 0;
}
