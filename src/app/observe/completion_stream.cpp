#include "app/observe/completion_stream.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t most_pending_bytes = 16 << 20;

// Whether the event brings text: a non-empty string behind one of the keys. Events are many and small, so that they
// are not parsed where a look is enough.
bool brings_text(std::string_view event) {
  for (const std::string_view key :
       {"\"text\"", "\"content\"", "\"reasoning_content\"", "\"reasoning\"", "\"arguments\""}) {
    for (size_t at = event.find(key); at != std::string_view::npos; at = event.find(key, at + 1)) {
      size_t value = at + key.size();
      while (value < event.size() && (event[value] == ' ' || event[value] == ':')) ++value;
      if (value + 1 < event.size() && event[value] == '"' && event[value + 1] != '"') return true;
    }
  }
  return false;
}

std::optional<int64_t> usage_count(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value != nullptr && value->kind() == Json::Kind::integer ? std::optional(value->integer()) : std::nullopt;
}

// Gateways and web servers answer with pages of their own.
bool is_html(std::string_view body) {
  const size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const std::string start = lower_case(body.substr(first, 14));
  return start.starts_with("<!doctype html") || start.starts_with("<html");
}

std::string html_summary(std::string_view body) {
  constexpr std::string_view open = "<title>", close = "</title>";
  const std::string page = lower_case(body);
  const size_t begin = page.find(open), end = page.find(close);
  if (begin == std::string::npos || end == std::string::npos || end < begin + open.size()) return "an HTML page";
  const size_t text = begin + open.size();
  return fmt::format("an HTML page titled \"{}\"", printable(body.substr(text, end - text), 60));
}

}  // namespace

std::string server_error_text(std::string_view body) {
  try {
    const Json json = parse_json(body, "answer");
    const Json* error = json.find("error");
    if (error != nullptr && error->kind() == Json::Kind::string) return printable(error->string(), 200);
    for (const Json* place : {error, &json}) {
      if (place == nullptr) continue;
      for (const char* key : {"message", "detail"}) {
        const Json* message = place->find(key);
        if (message != nullptr && message->kind() == Json::Kind::string) return printable(message->string(), 200);
      }
    }
  } catch (const InputError&) {
    // Not JSON: a page, or the text as it is.
  }
  if (is_html(body)) return html_summary(body);
  return printable(body, 200);
}

void CompletionStream::read_usage(std::string_view text) {
  const Json json = parse_json(text, "an event of the stream");
  if (const Json* error = json.find("error"); error != nullptr && error->kind() != Json::Kind::null) {
    error_ = server_error_text(text);
  }
  const Json* usage = json.find("usage");
  if (usage == nullptr || usage->kind() != Json::Kind::object) return;
  if (const auto count = usage_count(*usage, "prompt_tokens")) usage_.prompt_tokens = count;
  if (const auto count = usage_count(*usage, "completion_tokens")) usage_.completion_tokens = count;
  const Json* details = usage->find("prompt_tokens_details");
  if (details == nullptr) return;
  if (const auto count = usage_count(*details, "cached_tokens")) usage_.cached_tokens = count;
}

bool CompletionStream::take_event(std::string_view data) {
  if (data == "[DONE]") {
    done_ = true;
    return false;
  }
  if (data.find("\"usage\"") != std::string_view::npos || data.find("\"error\"") != std::string_view::npos) {
    read_usage(data);
  }
  if (!brings_text(data)) return false;
  ++text_events_;
  return true;
}

int64_t CompletionStream::take(std::string_view piece, bool is_event_stream) {
  if (pending_.size() + piece.size() > most_pending_bytes) {
    throw InputError({.source = "the server's answer", .value = "more than 16 MiB", .expected = "shorter lines"});
  }
  if (!is_event_stream) {
    pending_.append(piece);
    return 0;
  }
  int64_t events = 0;
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      pending_.append(piece);
      break;
    }
    std::string_view line = piece.substr(0, end);
    if (!pending_.empty()) {
      pending_.append(line);
      line = pending_;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("data:")) {
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      events += take_event(line) ? 1 : 0;
    }
    pending_.clear();
    piece.remove_prefix(end + 1);
  }
  return events;
}

}  // namespace foretoken
