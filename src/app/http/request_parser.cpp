#include "app/http/request_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t";
  const size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

// All of the text is a number.
bool parse_whole(std::string_view text, int base, size_t& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && problem == std::errc() && end == text.data() + text.size();
}

// Of a path, where + is itself. Nothing for an escape that is none, or of a NUL.
std::optional<std::string> without_escapes(std::string_view path) {
  std::string text;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      text += path[i];
      continue;
    }
    size_t code = 0;
    if (i + 2 >= path.size() || !parse_whole(path.substr(i + 1, 2), 16, code) || code == 0) return std::nullopt;
    text += static_cast<char>(code);
    i += 2;
  }
  return text;
}

}  // namespace

size_t HttpRequestParser::feed(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && step_ != Step::done && error_status_ == 0) {
    if (step_ == Step::body || step_ == Step::chunk) {
      const size_t count = std::min(left_, bytes.size() - used);
      request_.body.append(bytes, used, count);
      used += count;
      left_ -= count;
      if (left_ == 0) step_ = step_ == Step::body ? Step::done : Step::chunk_end;
      continue;
    }
    const size_t end = bytes.find('\n', used);
    const size_t count = (end == std::string_view::npos ? bytes.size() : end + 1) - used;
    // Counted up to the limit, so that the complaint does not depend on how the bytes come.
    const size_t room = limits_.max_header_bytes + 1 - header_bytes_;
    line_.append(bytes, used, std::min(count, room));
    used += std::min(count, room);
    header_bytes_ += std::min(count, room);
    if (header_bytes_ > limits_.max_header_bytes) {
      fail(431, fmt::format("headers of more than {} bytes", limits_.max_header_bytes));
    } else if (line_.ends_with('\n')) {
      take_line();
    }
  }
  return used;
}

HttpRequest HttpRequestParser::take() {
  ensure(complete(), "only a whole request is taken");
  HttpRequest request = std::move(request_);
  *this = HttpRequestParser(limits_);
  return request;
}

void HttpRequestParser::take_line() {
  if (!line_.ends_with("\r\n")) return fail(400, "a line that does not end with CR LF");
  line_.resize(line_.size() - 2);
  if (has_control(line_)) return fail(400, "a control character");
  switch (step_) {
    case Step::line:
      take_request_line();
      break;
    case Step::headers:
      line_.empty() ? end_headers() : take_header(false);
      break;
    case Step::chunk_size:
      take_chunk_size();
      break;
    case Step::chunk_end:
      if (!line_.empty()) return fail(400, "a chunk longer than it says");
      step_ = Step::chunk_size;
      break;
    case Step::trailers:
      if (line_.empty()) {
        step_ = Step::done;
      } else {
        take_header(true);
      }
      break;
    default:
      throw InternalError("a line is read where one can stand");
  }
  line_.clear();
}

void HttpRequestParser::take_request_line() {
  if (line_.empty()) return;  // an empty line before a request is allowed (RFC 9112, 2.2)
  const std::string_view line = line_;
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return fail(400, "no request line");
  const std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  request_.method = line.substr(0, first);
  if (!is_token(request_.method)) return fail(400, "no method");
  if (!target.starts_with('/') || target.find_first_of(" \t") != std::string_view::npos) {
    return fail(400, "a target that is not a path");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return fail(version.starts_with("HTTP/") ? 505 : 400, "not HTTP/1.1");
  }
  http_1_0_ = version == "HTTP/1.0";
  request_.keep_alive = request_.takes_chunks = !http_1_0_;
  const size_t question = target.find('?');
  std::optional<std::string> path = without_escapes(target.substr(0, question));
  if (!path) return fail(400, "an invalid percent-escape in the path (use %XX with two hexadecimal digits, not %00)");
  request_.path = std::move(*path);
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  step_ = Step::headers;
}

void HttpRequestParser::take_header(bool trailer) {
  const std::string_view line = line_;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return fail(400, "no header");
  if (trailer) return;  // nothing that we read may stand there
  if (request_.headers.size() == limits_.max_headers) {
    return fail(431, fmt::format("more than {} headers", limits_.max_headers));
  }
  const std::string name = lower_case(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "host") {
    if (has_host_) return fail(400, "two hosts");
    has_host_ = true;
  } else if (name == "content-length") {
    size_t length = 0;
    if (!parse_whole(value, 10, length)) return fail(400, "no length");
    if (has_length_) return fail(400, "two lengths");
    has_length_ = true;
    left_ = length;
  } else if (name == "transfer-encoding") {
    if (chunked_) return fail(400, "two encodings");
    if (lower_case(value) != "chunked") return fail(501, "a transfer encoding other than chunked");
    chunked_ = true;
  } else if (name == "connection") {
    const std::string choice = lower_case(value);
    if (choice.find("close") != std::string::npos) request_.keep_alive = false;
    if (http_1_0_ && choice.find("keep-alive") != std::string::npos) request_.keep_alive = true;
  } else if (name == "expect") {
    expects_continue_ = lower_case(value) == "100-continue";
  }
  request_.headers.emplace_back(name, value);
}

void HttpRequestParser::end_headers() {
  if (!has_host_ && !http_1_0_) return fail(400, "no host");
  if (chunked_ && has_length_) return fail(400, "both a length and chunks");
  if (chunked_ && http_1_0_) return fail(400, "chunks in HTTP/1.0");
  if (chunked_) {
    step_ = Step::chunk_size;
  } else if (left_ == 0) {
    step_ = Step::done;
  } else if (fits_body(left_)) {
    step_ = Step::body;
  }
}

void HttpRequestParser::take_chunk_size() {
  // Lines between chunks count again for each chunk, else a long body of small ones would be refused.
  header_bytes_ = 0;
  const std::string_view size = trimmed(std::string_view(line_).substr(0, line_.find(';')));
  if (!parse_whole(size, 16, left_)) return fail(400, "no size of a chunk");
  if (left_ == 0) {
    step_ = Step::trailers;
  } else if (fits_body(left_)) {
    step_ = Step::chunk;
  }
}

bool HttpRequestParser::fits_body(size_t more) {
  if (more <= limits_.max_body_bytes - request_.body.size()) return true;
  fail(413, fmt::format("a body of more than {} bytes", limits_.max_body_bytes));
  return false;
}

void HttpRequestParser::fail(int status, std::string why) {
  error_status_ = status;
  error_ = std::move(why);
}

}  // namespace foretoken
