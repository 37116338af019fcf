// The client of `observe` under TLS, against a server of OpenSSL's with a certificate made here.
#include "app/observe/client_stream.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "app/observe/load_client.h"
#include "base/error.h"
#include "serving/load/load_spec.h"

namespace foretoken::client_stream_test {

using testing::HasSubstr;

// Signed by itself, for 127.0.0.1.
class Certificate {
 public:
  Certificate() : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), own_(X509_new(), X509_free) {
    X509* const x = own_.get();
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key_.get());
    X509_NAME* const name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_EXTENSION* const of = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(x, of, -1);
    X509_EXTENSION_free(of);
    X509_sign(x, key_.get(), EVP_sha256());
    file_ = testing::TempDir() + "client_stream_test.pem";
    FILE* const out = std::fopen(file_.c_str(), "w");
    PEM_write_X509(out, x);
    std::fclose(out);
  }
  EVP_PKEY* key() const { return key_.get(); }
  X509* get() const { return own_.get(); }
  const std::string& file() const { return file_; }

 private:
  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
  std::unique_ptr<X509, void (*)(X509*)> own_;
  std::string file_;
};

// Lists a model, and answers every other request with three tokens.
class TlsServer {
 public:
  explicit TlsServer(const Certificate& certificate)
      : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), certificate.key());
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener_.get(), 16);
    socklen_t size = sizeof address;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      while (true) {
        const int connection = accept(listener_.get(), nullptr, nullptr);
        if (connection < 0) return;
        connections_.emplace_back([this, connection] { serve(FileDescriptor(connection)); });
      }
    });
  }
  ~TlsServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    for (std::thread& one : connections_) one.join();
  }

  int port = 0;

 private:
  void serve(const FileDescriptor& connection) const {
    const std::unique_ptr<SSL, void (*)(SSL*)> tls(SSL_new(context_.get()), SSL_free);
    SSL_set_fd(tls.get(), connection.get());
    if (SSL_accept(tls.get()) != 1) return;
    std::string read;
    char bytes[4096];
    for (int count = 0; (count = SSL_read(tls.get(), bytes, sizeof bytes)) > 0;) {
      read.append(bytes, static_cast<size_t>(count));
      const bool is_list = read.starts_with("GET /v1/models");
      if (!read.ends_with(is_list ? "\r\n\r\n" : "}")) continue;
      const std::string body =
          is_list ? R"({"data":[{"id":"mine"}]})"
                  : "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n"
                    "data: {\"choices\":[{\"text\":\"c\"}]}\n\ndata: [DONE]\n\n";
      const std::string answer = fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
                                             is_list ? "application/json" : "text/event-stream", body.size(), body);
      SSL_write(tls.get(), answer.data(), static_cast<int>(answer.size()));
      read.clear();
    }
  }

  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  FileDescriptor listener_;
  std::thread thread_;
  std::vector<std::thread> connections_;
};

LoadClientSettings settings_for(const TlsServer& server, const std::string& host, const std::string& authorities) {
  LoadClientSettings settings;
  settings.server = parse_server_url("--url", fmt::format("https://{}:{}", host, server.port));
  settings.authorities = authorities;
  settings.model = "mine";
  settings.metrics_interval_s = 0;
  return settings;
}

TEST(ClientStream, a_load_is_sent_under_tls) {
  const Certificate certificate;
  const TlsServer server(certificate);
  const LoadClientSettings settings = settings_for(server, "127.0.0.1", certificate.file());
  EXPECT_EQ(served_model(settings), "mine");
  LoadSpec load{.num_prompts = 8, .input_len = 2000, .output_len = 3};
  load.max_concurrency = 2;  // so that connections are used again
  const MeasuredRun run = run_load(settings, make_load(load));
  ASSERT_EQ(run.requests.size(), 8U);
  for (const MeasuredRequest& request : run.requests) {
    EXPECT_EQ(request.status, MeasuredStatus::completed) << request.error;
    EXPECT_EQ(request.output_tokens, 3);
  }
}

TEST(ClientStream, a_server_that_cannot_be_trusted_is_not_asked) {
  const Certificate certificate;
  const TlsServer server(certificate);
  const auto problem = [](const LoadClientSettings& settings) -> std::string {
    try {
      served_model(settings);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(problem(settings_for(server, "127.0.0.1", "")), HasSubstr("certificate is not trusted: self"));
  EXPECT_THAT(problem(settings_for(server, "localhost", certificate.file())), HasSubstr("hostname mismatch"));
  EXPECT_THAT(problem(settings_for(server, "127.0.0.1", "/no/such/file")), HasSubstr("PEM"));
}

}  // namespace foretoken::client_stream_test
