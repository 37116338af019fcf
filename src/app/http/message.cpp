#include "app/http/message.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

std::string head(const HttpResponse& response, bool keep_alive, std::string_view length) {
  std::string bytes =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}Connection: {}\r\n", response.status,
                  status_text(response.status), response.content_type, length, keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : response.headers)
    fmt::format_to(std::back_inserter(bytes), "{}: {}\r\n", name, value);
  return bytes + "\r\n";
}

}  // namespace

std::string_view HttpRequest::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

std::string HttpRequest::host_name() const {
  const std::string_view host = header("host");
  if (host.starts_with('[')) return lower_case(host.substr(1, std::min(host.find(']'), host.size()) - 1));
  return lower_case(host.substr(0, host.find(':')));
}

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string host_and_port(const std::string& host, int port) {
  const bool is_six = host.find(':') != std::string::npos;
  return fmt::format("{}:{}", is_six ? "[" + host + "]" : host, port);
}

std::string response_bytes(const HttpResponse& response, bool keep_alive, bool head_only) {
  std::string bytes = head(response, keep_alive, fmt::format("Content-Length: {}\r\n", response.body.size()));
  return head_only ? bytes : bytes + response.body;
}

std::string stream_head(const HttpResponse& response, bool keep_alive, bool chunked) {
  return head(response, keep_alive, chunked ? "Transfer-Encoding: chunked\r\n" : "");
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", data.size());
  out += data;
  out += "\r\n";
}

}  // namespace foretoken
