// Where a server is, as people write it and as sockets take it.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace foretoken {

struct ServerAddress {
  std::string host;
  int port = 80;
  std::string path;  // before /v1; empty or "/prefix"
  bool encrypted = false;
  std::string flag = {}, written = {};  // where it was given, and how, for messages
};
// http://HOST:PORT[/PREFIX][/v1], or https://; http where it is left out.
ServerAddress parse_server_url(const std::string& flag, const std::string& url);

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};
// All of the host, at least one: localhost is often ::1 as well as 127.0.0.1, and servers listen on one of them.
// InputError where nobody knows the host.
std::vector<SocketAddress> resolve(const ServerAddress& server);

}  // namespace foretoken
