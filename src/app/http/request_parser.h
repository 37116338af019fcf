// Reads HTTP/1.1 requests from a connection, in whatever pieces they come.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "app/http/message.h"

namespace foretoken {

struct HttpLimits {
  size_t max_header_bytes = size_t{32} << 10;  // request line, headers and trailers; also of the lines between chunks
  size_t max_headers = 100;
  size_t max_body_bytes = 4 << 20;
};

// Strict where servers and proxies could disagree about where a request ends: lines end with CR LF, no folded headers,
// one length only.
class HttpRequestParser {
 public:
  explicit HttpRequestParser(const HttpLimits& limits) : limits_(limits) {}

  // How many of the bytes belong to this request: all of them, unless it is complete or wrong.
  size_t feed(std::string_view bytes);

  bool started() const { return step_ != Step::line || !line_.empty(); }
  bool complete() const { return step_ == Step::done; }
  // The client waits for a word before it sends the body.
  bool expects_continue() const {
    return expects_continue_ && request_.body.empty() && (step_ == Step::body || step_ == Step::chunk_size);
  }
  // The request; begins a new one. Only when complete.
  HttpRequest take();

  // What is wrong with the request: 0 = nothing. What follows on the connection cannot be read.
  int error_status() const { return error_status_; }
  const std::string& error() const { return error_; }

 private:
  enum class Step { line, headers, body, chunk_size, chunk, chunk_end, trailers, done };

  void take_line();
  void take_request_line();
  void take_header(bool trailer);
  void end_headers();
  void take_chunk_size();
  bool fits_body(size_t more);
  void fail(int status, std::string why);

  HttpLimits limits_;
  Step step_ = Step::line;
  HttpRequest request_;
  std::string line_;
  size_t header_bytes_ = 0;
  size_t left_ = 0;  // bytes of the body, or of the chunk
  bool has_host_ = false, has_length_ = false, chunked_ = false, expects_continue_ = false;
  bool http_1_0_ = false;
  int error_status_ = 0;
  std::string error_;
};

}  // namespace foretoken
