#include "app/http/server.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/http/test_client.h"
#include "base/error.h"

namespace foretoken::server_test {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Answers /echo with its body, /stream with three pieces, and /never not at all.
class EchoService final : public HttpService {
 public:
  void requested(ConnectionId connection, HttpRequest&& request) override {
    if (request.path == "/never") return;
    if (request.path == "/stream") {
      server->begin_stream(connection, {.content_type = "text/plain"});
      for (const char* piece : {"one ", "two ", "three"}) server->write(connection, piece);
      return server->end_stream(connection);
    }
    server->respond(connection, {.body = request.body});
  }
  void left(ConnectionId /*connection*/) override { ++clients_left; }
  HttpResponse refusal(int status, const std::string& why) override { return {.status = status, .body = why}; }

  HttpServer* server = nullptr;
  std::atomic<int> clients_left = 0;
};

class RunningServer {
 public:
  explicit RunningServer(HttpServerSettings settings = {}) {
    settings.port = 0;
    server_.emplace(settings, service);
    service.server = &*server_;
    thread_ = std::thread([this] { server_->run(); });
  }
  ~RunningServer() { stop(); }
  void stop() {
    server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  void begin_stop() { server_->stop(); }
  int port() const { return server_->port(); }

  EchoService service;

 private:
  std::optional<HttpServer> server_;
  std::thread thread_;
};

TEST(HttpServer, a_head_is_answered_without_a_body) {
  RunningServer server;
  TestClient client(server.port());
  client.send_bytes(
      "HEAD /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
      "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string all = client.read_all();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(all, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_EQ(all.find("hi"), std::string::npos);
  EXPECT_THAT(all, HasSubstr("\r\n\r\nHTTP/1.1 200 OK")) << "the next answer follows at once";
}

TEST(HttpServer, streams_to_http_1_0_end_with_the_connection) {
  RunningServer server;
  TestClient client(server.port());
  client.send_bytes("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string all = client.read_all();
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_THAT(all, HasSubstr("Connection: close"));
  EXPECT_THAT(all, EndsWith("\r\n\r\none two three"));
}

TEST(HttpServer, statuses_have_their_names) {
  for (const int status : {200, 204, 400, 403, 404, 405, 408, 413, 415, 422, 429, 431, 500, 501, 503, 505}) {
    EXPECT_NE(status_text(status), "Unknown") << status;
  }
}

TEST(HttpServer, answers_whole_and_in_streams) {
  RunningServer server;
  EXPECT_EQ(ask(server.port(), "POST", "/echo", "hello").body, "hello");
  EXPECT_EQ(ask(server.port(), "GET", "/stream").body, "one two three");
}

TEST(HttpServer, keeps_the_connection_and_answers_requests_sent_ahead_in_order) {
  RunningServer server;
  TestClient client(server.port());
  for (const char* body : {"first", "second"}) client.send_request("POST", "/echo", body, true);
  client.send_request("POST", "/echo", "third");
  const std::string all = client.read_all();
  EXPECT_LT(all.find("first"), all.find("second"));
  EXPECT_LT(all.find("second"), all.find("third"));
  EXPECT_THAT(all, EndsWith("third"));
}

TEST(HttpServer, refuses_malformed_and_oversized_requests_and_closes) {
  RunningServer server({.limits = {.max_body_bytes = 10}});
  TestClient malformed(server.port());
  malformed.send_bytes("NOT HTTP\r\n\r\n");
  EXPECT_THAT(malformed.read_all(), StartsWith("HTTP/1.1 400 "));
  const TestAnswer oversized = ask(server.port(), "POST", "/echo", std::string(11, 'x'));
  EXPECT_EQ(oversized.status, 413);
  EXPECT_THAT(oversized.head, HasSubstr("Connection: close"));
}

TEST(HttpServer, refuses_connections_beyond_its_limit_until_others_have_closed) {
  RunningServer server({.max_connections = 1});
  std::optional<TestClient> first(std::in_place, server.port());
  first->send_request("POST", "/echo", "a", true);
  EXPECT_THAT(first->read_until("\r\n\r\na"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(ask(server.port(), "POST", "/echo", "b").status, 429);
  first.reset();
  int status = 429;
  for (int i = 0; i < 1000 && status == 429; ++i) status = ask(server.port(), "POST", "/echo", "c").status;
  EXPECT_EQ(status, 200);
}

TEST(HttpServer, tells_when_a_client_has_left_before_its_answer) {
  RunningServer server;
  {
    TestClient client(server.port());
    client.send_request("GET", "/never");
    ask(server.port(), "POST", "/echo", "the server has read both");
  }
  while (server.service.clients_left == 0) std::this_thread::yield();
  EXPECT_EQ(server.service.clients_left, 1);
}

TEST(HttpServer, drops_clients_that_never_finish_their_request) {
  RunningServer server({.request_timeout = std::chrono::milliseconds(1)});
  TestClient client(server.port());
  client.send_bytes("GET / HT");
  EXPECT_EQ(client.read_all(), "");
}

// Slowloris: many clients, each of which sends a byte now and then.
TEST(HttpServer, drops_clients_that_trickle_their_request_while_others_are_served) {
  RunningServer server({.request_timeout = std::chrono::milliseconds(100)});
  std::vector<std::unique_ptr<TestClient>> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(std::make_unique<TestClient>(server.port()));
    slow.back()->send_bytes("POST /echo HTTP/1.1\r\nX-Slow: ");
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < end) {
    for (const auto& client : slow) client->send_bytes("x");
    EXPECT_EQ(ask(server.port(), "POST", "/echo", "others are served").status, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (const auto& client : slow) {
    client->send_bytes("\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(client->read_all(), "") << "the connection is closed, whatever comes after";
  }
}

TEST(HttpServer, drops_clients_that_read_nothing_of_what_they_ask_for) {
  RunningServer server({.max_pending_bytes = 100'000});
  TestClient client(server.port());
  const std::string large(1'000'000, 'x');
  // The kernel's buffers take some of it.
  for (int i = 0; i < 20; ++i) client.send_request("POST", "/echo", large, true);
  EXPECT_EQ(ask(server.port(), "POST", "/echo", "others are served").status, 200);
}

TEST(HttpServer, an_answer_larger_than_what_may_wait_of_a_stream_comes_whole) {
  RunningServer server({.max_pending_bytes = 100'000});
  const std::string large(4'000'000, 'x');
  EXPECT_EQ(ask(server.port(), "POST", "/echo", large).body.size(), large.size());
}

TEST(HttpServer, sends_the_word_that_a_client_waits_for_before_a_long_body) {
  RunningServer server;
  TestClient client(server.port());
  client.send_bytes("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send_bytes("body");
  EXPECT_THAT(client.read_until("body"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, stops_at_once_when_no_answer_is_under_way_and_after_the_grace_otherwise) {
  RunningServer idle;
  TestClient kept(idle.port());
  idle.stop();
  RunningServer busy({.grace = std::chrono::milliseconds(20)});
  TestClient client(busy.port());
  client.send_request("GET", "/never");
  ask(busy.port(), "POST", "/echo", "the server has read both");
  busy.stop();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(busy.service.clients_left, 1) << "the service hears of an answer that was cut off";
}

TEST(HttpServer, complains_about_an_address_that_is_taken_or_none) {
  RunningServer server;
  EchoService service;
  EXPECT_THROW(HttpServer({.port = server.port()}, service), InputError);
  EXPECT_THROW(HttpServer({.host = "localhost"}, service), InputError);
}

}  // namespace foretoken::server_test
