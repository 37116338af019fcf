// The bytes of one connection of a client: plain, or under TLS by OpenSSL.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "app/http/file_descriptor.h"

struct ssl_st;
struct ssl_ctx_st;

namespace foretoken {

// Whom connections under TLS trust: the system's authorities (or those of SSL_CERT_FILE) and those of a file.
class TlsTrust {
 public:
  // `authorities`: certificates in PEM; empty = none beside the system's. InputError where it cannot be read.
  explicit TlsTrust(const std::filesystem::path& authorities);

  ssl_ctx_st* get() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
};

class ClientStream {
 public:
  enum class State { moved, wants_read, wants_write, closed, failed };
  struct Moved {
    State state = State::moved;
    size_t bytes = 0;
    std::string error = {};  // why it failed
  };

  ClientStream() = default;
  // Of a connected socket, or one that is being connected; `trust`: null = plain. The server's certificate must be for
  // `host`. The handshake is part of the first bytes that move.
  ClientStream(FileDescriptor socket, const TlsTrust* trust, const std::string& host);

  int descriptor() const { return socket_.get(); }
  bool is_encrypted() const { return tls_ != nullptr; }

  Moved send(std::string_view bytes);
  Moved receive(std::span<char> into);

 private:
  Moved outcome_of(int result) const;

  FileDescriptor socket_;
  std::shared_ptr<ssl_st> tls_;  // shared: its deleter is not known here
};

}  // namespace foretoken
