// What comes back for one request: server-sent events of OpenAI's completions and chats, or a document that is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretoken {

struct ServerUsage {
  std::optional<int64_t> prompt_tokens, completion_tokens, cached_tokens;
};

class CompletionStream {
 public:
  // Takes a piece of the body; returns how many events with text it completed. InputError for events that are no JSON.
  int64_t take(std::string_view piece, bool is_event_stream);

  int64_t text_events() const { return text_events_; }
  bool is_done() const { return done_; }  // the stream said so
  const ServerUsage& usage() const { return usage_; }
  const std::string& error() const { return error_; }  // the server's words; empty = none
  std::string_view document() const { return pending_; }

 private:
  bool take_event(std::string_view data);
  void read_usage(std::string_view text);

  std::string pending_;  // a line that has not ended, or the whole document
  ServerUsage usage_;
  std::string error_;
  int64_t text_events_ = 0;
  bool done_ = false;
};

// The `message` of an error that an OpenAI-compatible server answered, or the text itself, cut short.
std::string server_error_text(std::string_view body);

}  // namespace foretoken
