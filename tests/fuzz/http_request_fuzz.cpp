// Any bytes are requests and then perhaps an error, and the same ones however they are split.
#include <string>
#include <vector>

#include "app/http/request_parser.h"
#include "fuzz.h"

namespace {

using namespace foretoken;

struct Reading {
  std::vector<HttpRequest> requests;
  int status = 0;
  bool operator==(const Reading&) const = default;
};

Reading read(std::string_view bytes, size_t piece) {
  const HttpLimits limits{.max_header_bytes = 300, .max_headers = 8, .max_body_bytes = 200};
  HttpRequestParser parser(limits);
  Reading reading;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    std::string_view part = bytes.substr(at, piece);
    while (!part.empty() && parser.error_status() == 0) {
      part.remove_prefix(parser.feed(part));
      if (!parser.complete()) continue;
      reading.requests.push_back(parser.take());
      const HttpRequest& request = reading.requests.back();
      promise(request.body.size() <= limits.max_body_bytes, "a body keeps to its limit");
      promise(request.headers.size() <= limits.max_headers, "headers keep to their limit");
      promise(request.path.starts_with('/'), "a path begins at the root");
    }
  }
  reading.status = parser.error_status();
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = as_text(data, size);
  const Reading whole = read(bytes, size + 1);
  promise(read(bytes, 1) == whole, "single bytes give the same requests");
  promise(read(bytes, 7) == whole, "pieces give the same requests");
  return 0;
}
