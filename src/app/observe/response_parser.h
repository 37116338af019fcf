// HTTP/1.1 answers as a client reads them, piece by piece (RFC 9112): a length, chunks, or until the server closes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace foretoken {

class HttpResponseParser {
 public:
  using Body = std::function<void(std::string_view piece)>;

  // Hands the body's bytes on as they come. What follows the answer is not taken. InputError for what is no HTTP.
  void feed(std::string_view bytes, const Body& body);
  // The server has closed the connection. InputError where the answer is not whole.
  void closed();
  void begin_next();  // once the answer is complete

  bool is_complete() const { return phase_ == Phase::complete; }
  bool has_begun() const { return begun_; }
  int status() const { return status_; }  // 0 = not known yet
  bool keeps_alive() const { return keep_alive_; }
  bool is_event_stream() const { return event_stream_; }

 private:
  enum class Phase : uint8_t { head, sized, chunk_size, chunk, chunk_end, trailer, until_close, complete };
  bool take_line(std::string_view& bytes);  // into line_; false: it has not ended yet
  void end_head();
  void read_header(std::string_view name, std::string_view value);

  Phase phase_ = Phase::head;
  std::string line_;
  size_t head_bytes_ = 0;
  bool begun_ = false, chunked_ = false, has_length_ = false, keep_alive_ = true, event_stream_ = false;
  bool line_done_ = false;
  int status_ = 0;
  uint64_t left_ = 0;  // of the body, or of a chunk
};

}  // namespace foretoken
