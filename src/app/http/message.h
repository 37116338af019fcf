// HTTP/1.1 requests and answers (RFC 9110, RFC 9112), as far as a server of small JSON documents needs them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;     // without the query and its escapes
  std::string query;    // behind the question mark
  HttpHeaders headers;  // names in lower case, values without space around them
  std::string body;
  bool keep_alive = true;
  bool takes_chunks = true;  // HTTP/1.0 does not

  // Empty when there is none.
  std::string_view header(std::string_view lower_case_name) const;
  // Of its Host header, without the port and in lower case: "127.0.0.1:8080" -> "127.0.0.1", "[::1]:8080" -> "::1".
  std::string host_name() const;
  bool operator==(const HttpRequest&) const = default;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  HttpHeaders headers = {};
};

std::string_view status_text(int status);                      // "Not Found"
std::string host_and_port(const std::string& host, int port);  // as in a URL or a Host header: "[::1]:8000"

// The bytes of a whole answer; to a HEAD, those before its body.
std::string response_bytes(const HttpResponse& response, bool keep_alive, bool head_only = false);
// Those of an answer whose length is not known yet: what follows comes in chunks, or ends with the connection.
std::string stream_head(const HttpResponse& response, bool keep_alive, bool chunked = true);
void append_chunk(std::string& out, std::string_view data);  // nothing for no data: an empty chunk would end the answer
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace foretoken
