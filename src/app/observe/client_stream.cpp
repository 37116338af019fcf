#include "app/observe/client_stream.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/error.h"

namespace foretoken {
namespace {

std::string last_tls_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "TLS failed" : reason;
}

bool is_number_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 || inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

ClientStream::Moved plain_outcome(ssize_t count) {
  using enum ClientStream::State;
  if (count >= 0) return {.state = moved, .bytes = static_cast<size_t>(count)};
  return {.state = failed, .error = std::strerror(errno)};
}

}  // namespace

TlsTrust::TlsTrust(const std::filesystem::path& authorities)
    : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
  ensure(context_ != nullptr, "TLS can be set up");
  SSL_CTX_set_min_proto_version(get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_default_verify_paths(get());
  SSL_CTX_set_mode(get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(get(), SSL_OP_IGNORE_UNEXPECTED_EOF);  // servers that just close; HTTP knows its own end
  if (!authorities.empty() && SSL_CTX_load_verify_file(get(), authorities.c_str()) != 1) {
    throw InputError({.source = authorities.string(),
                      .value = last_tls_error(),
                      .expected = "a file of certificates in PEM format"});
  }
}

ClientStream::ClientStream(FileDescriptor socket, const TlsTrust* trust, const std::string& host)
    : socket_(std::move(socket)) {
  if (trust == nullptr) return;
  tls_ = std::shared_ptr<ssl_st>(SSL_new(trust->get()), SSL_free);
  ensure(tls_ != nullptr && SSL_set_fd(tls_.get(), socket_.get()) == 1, "a connection under TLS can be set up");
  if (is_number_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str());
  } else {
    SSL_set1_host(tls_.get(), host.c_str());
    SSL_set_tlsext_host_name(tls_.get(), host.c_str());
  }
  SSL_set_connect_state(tls_.get());
}

ClientStream::Moved ClientStream::outcome_of(int result) const {
  if (result > 0) return {.state = State::moved, .bytes = static_cast<size_t>(result)};
  const int system_error = errno;
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {.state = State::wants_read};
    case SSL_ERROR_WANT_WRITE:
      return {.state = State::wants_write};
    case SSL_ERROR_ZERO_RETURN:
      return {.state = State::closed};
    case SSL_ERROR_SYSCALL:
      ERR_clear_error();
      return {.state = State::failed,
              .error = system_error == 0 ? "the connection broke" : std::strerror(system_error)};
    default:
      break;
  }
  const long verified = SSL_get_verify_result(tls_.get());
  const std::string why = last_tls_error();
  if (why == "wrong version number") return {.state = State::failed, .error = "the server does not speak TLS there"};
  if (verified == X509_V_OK) return {.state = State::failed, .error = why};
  return {.state = State::failed,
          .error = fmt::format("the server's certificate is not trusted: {}; pass its certificate with --ca-file FILE",
                               X509_verify_cert_error_string(verified))};
}

ClientStream::Moved ClientStream::send(std::string_view bytes) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    return outcome_of(SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX))));
  }
  const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {.state = State::wants_write};
  return plain_outcome(count);
}

ClientStream::Moved ClientStream::receive(std::span<char> into) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    return outcome_of(SSL_read(tls_.get(), into.data(), static_cast<int>(std::min<size_t>(into.size(), INT_MAX))));
  }
  const ssize_t count = recv(socket_.get(), into.data(), into.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {.state = State::wants_read};
  if (count == 0) return {.state = State::closed};
  return plain_outcome(count);
}

}  // namespace foretoken
