#include "app/observe/response_parser.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t most_head_bytes = 64 << 10;

[[noreturn]] void fail_answer(std::string_view value, const char* expected) {
  throw InputError({.source = "the server's answer", .value = printable(value), .expected = expected});
}

std::string_view header_value(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

uint64_t answer_number(std::string_view text, int base, const char* expected) {
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failed != std::errc{} || end != text.data() + text.size()) fail_answer(text, expected);
  return number;
}

}  // namespace

bool HttpResponseParser::take_line(std::string_view& bytes) {
  if (line_done_) line_.clear();
  line_done_ = false;
  const size_t end = bytes.find('\n');
  const size_t taken = end == std::string_view::npos ? bytes.size() : end + 1;
  line_.append(bytes.substr(0, taken));
  bytes.remove_prefix(taken);
  head_bytes_ += taken;
  if (head_bytes_ > most_head_bytes) fail_answer(line_, "headers of at most 64 KiB");
  if (end == std::string_view::npos) return false;
  line_.pop_back();
  if (line_.ends_with('\r')) line_.pop_back();
  line_done_ = true;
  return true;
}

void HttpResponseParser::read_header(std::string_view name, std::string_view value) {
  if (equal_ignoring_case(name, "content-length")) {
    left_ = answer_number(value, 10, "a content-length in bytes");
    has_length_ = true;
  } else if (equal_ignoring_case(name, "transfer-encoding")) {
    chunked_ = contains_ignoring_case(value, "chunked");
  } else if (equal_ignoring_case(name, "connection")) {
    if (contains_ignoring_case(value, "close")) keep_alive_ = false;
  } else if (equal_ignoring_case(name, "content-type")) {
    event_stream_ = starts_with_ignoring_case(value, "text/event-stream");
  }
}

void HttpResponseParser::end_head() {
  if (status_ < 200) {  // another head follows
    status_ = 0;
    return;
  }
  if (chunked_) {
    phase_ = Phase::chunk_size;
  } else if (status_ == 204 || status_ == 304 || (has_length_ && left_ == 0)) {
    phase_ = Phase::complete;
  } else if (has_length_) {
    phase_ = Phase::sized;
  } else {
    phase_ = Phase::until_close;
    keep_alive_ = false;
  }
}

void HttpResponseParser::feed(std::string_view bytes, const Body& body) {
  while (!bytes.empty() && phase_ != Phase::complete) {
    begun_ = true;
    switch (phase_) {
      case Phase::head:
        if (!take_line(bytes)) return;
        if (status_ == 0) {
          if (!line_.starts_with("HTTP/1.") || line_.size() < 12) fail_answer(line_, "HTTP/1.1 and a status");
          status_ = static_cast<int>(answer_number(line_.substr(9, 3), 10, "a status of three digits"));
          if (line_[7] == '0') keep_alive_ = false;
        } else if (line_.empty()) {
          end_head();
        } else if (const size_t colon = line_.find(':'); colon != std::string::npos) {
          read_header(std::string_view(line_).substr(0, colon),
                      header_value(std::string_view(line_).substr(colon + 1)));
        } else {
          fail_answer(line_, "a header: NAME: VALUE");
        }
        break;
      case Phase::chunk_size: {
        if (!take_line(bytes)) return;
        head_bytes_ = 0;
        left_ =
            answer_number(header_value(std::string_view(line_).substr(0, line_.find(';'))), 16, "the size of a chunk");
        phase_ = left_ == 0 ? Phase::trailer : Phase::chunk;
        break;
      }
      case Phase::chunk_end:
        if (!take_line(bytes)) return;
        if (!line_.empty()) fail_answer(line_, "the end of a chunk");
        phase_ = Phase::chunk_size;
        break;
      case Phase::trailer:
        if (!take_line(bytes)) return;
        if (line_.empty()) phase_ = Phase::complete;
        break;
      case Phase::sized:
      case Phase::chunk: {
        const std::string_view piece = bytes.substr(0, left_);
        body(piece);
        left_ -= piece.size();
        bytes.remove_prefix(piece.size());
        if (left_ == 0) phase_ = phase_ == Phase::sized ? Phase::complete : Phase::chunk_end;
        break;
      }
      case Phase::until_close:
        body(bytes);
        return;
      case Phase::complete:
        return;
    }
  }
}

void HttpResponseParser::closed() {
  keep_alive_ = false;
  if (phase_ == Phase::until_close) phase_ = Phase::complete;
  if (phase_ != Phase::complete) fail_answer("", "a whole answer: the server closed the connection");
}

void HttpResponseParser::begin_next() {
  *this = HttpResponseParser();
}

}  // namespace foretoken
