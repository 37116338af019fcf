#include "app/observe/server_address.h"

#include <netdb.h>

#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {

std::vector<SocketAddress> resolve(const ServerAddress& server) {
  const addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(server.host.c_str(), fmt::format("{}", server.port).c_str(), &hints, &found);
  if (failed != 0 || found == nullptr) {
    throw InputError({.source = server.flag,
                      .value = printable(server.host),
                      .expected = fmt::format("a host name that can be resolved ({})", gai_strerror(failed))});
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    address.size = one->ai_addrlen;
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  return addresses;
}

ServerAddress parse_server_url(const std::string& flag, const std::string& given) {
  // People write localhost:8000.
  const std::string url = given.find("://") == std::string::npos && !given.empty() ? "http://" + given : given;
  const auto fail = [&](const std::string& expected) {
    throw InputError({.source = flag, .value = printable(given), .expected = expected});
  };
  ServerAddress server{.host = {}, .path = {}, .flag = flag, .written = given};
  server.encrypted = starts_with_ignoring_case(url, "https://");
  if (!server.encrypted && !starts_with_ignoring_case(url, "http://")) fail("http://HOST:PORT or https://HOST");
  if (server.encrypted) server.port = 443;
  std::string rest = url.substr(server.encrypted ? 8 : 7);
  if (const size_t slash = rest.find('/'); slash != std::string::npos) {
    server.path = rest.substr(slash);
    rest.resize(slash);
  }
  while (server.path.ends_with('/')) server.path.pop_back();
  if (server.path.ends_with("/v1")) server.path.resize(server.path.size() - 3);
  if (server.path.find_first_of(" ?#\r\n") != std::string::npos) fail("a path without spaces, ? or #");
  size_t colon = rest.rfind(':');
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string::npos) fail("an address in brackets: http://[::1]:8000");
    server.host = rest.substr(1, close - 1);
    colon = close + 1 < rest.size() ? close + 1 : std::string::npos;
  } else {
    server.host = rest.substr(0, colon);
  }
  if (colon != std::string::npos) {
    const std::optional<int64_t> port = parse_integer(rest.substr(colon + 1));
    if (!port || *port < 1 || *port > 65'535) fail("a port from 1 to 65535");
    server.port = static_cast<int>(*port);
  }
  if (server.host.empty() || server.host.find_first_of(" @\r\n") != std::string::npos)
    fail("http://HOST:PORT or https://HOST");
  return server;
}

}  // namespace foretoken
