// A blocking client for tests of servers.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "app/http/file_descriptor.h"

namespace foretoken {

class TestClient {
 public:
  explicit TestClient(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("no connection to the server under test");
    }
    const timeval patience{.tv_sec = 60, .tv_usec = 0};  // sanitizers on a busy machine take long
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  void send_bytes(std::string_view bytes) { send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void send_request(std::string_view method, std::string_view path, std::string_view body = "", bool keep = false) {
    send_bytes(fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nConnection: {}\r\nContent-Length: {}\r\n\r\n{}", method, path,
                           keep ? "keep-alive" : "close", body.size(), body));
  }
  // What has come when the mark has, or when the server has closed; later bytes stay for the next call.
  std::string read_until(std::string_view mark) {
    while (mark.empty() || unread_.find(mark) == std::string::npos) {
      if (!read_more()) return std::exchange(unread_, {});
    }
    const size_t end = unread_.find(mark) + mark.size();
    std::string text = unread_.substr(0, end);
    unread_.erase(0, end);
    return text;
  }
  std::string read_all() { return read_until(""); }

 private:
  bool read_more() {
    std::array<char, 4096> bytes;
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) unread_.append(bytes.data(), static_cast<size_t>(count));
    return count > 0;
  }

  FileDescriptor socket_;
  std::string unread_;
};

struct TestAnswer {
  int status = 0;
  std::string head, body;
};

// An answer as it came, its chunks put together.
inline TestAnswer parsed_answer(const std::string& bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos || bytes.size() < 12) return {};
  TestAnswer answer{
      .status = std::stoi(bytes.substr(9, 3)), .head = bytes.substr(0, end), .body = bytes.substr(end + 4)};
  if (answer.head.find("chunked") == std::string::npos) return answer;
  std::string_view rest = std::string_view(bytes).substr(end + 4);
  answer.body.clear();
  while (!rest.empty()) {
    const size_t line = rest.find("\r\n");
    const size_t size = std::stoul(std::string(rest.substr(0, line)), nullptr, 16);
    answer.body += rest.substr(line + 2, size);
    rest.remove_prefix(line + 2 + size + 2);
  }
  return answer;
}

inline TestAnswer ask(int port, std::string_view method, std::string_view path, std::string_view body = "") {
  TestClient client(port);
  client.send_request(method, path, body);
  return parsed_answer(client.read_all());
}

}  // namespace foretoken
