// An HTTP/1.1 server in one thread: many connections, answers whole or in a stream, and a timer for whoever answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/http/file_descriptor.h"
#include "app/http/message.h"
#include "app/http/request_parser.h"

namespace foretoken {

using ConnectionId = uint64_t;
using ServerTime = std::chrono::steady_clock::time_point;

struct HttpServerSettings {
  std::string host = "127.0.0.1";  // an address, no name
  int port = 8000;                 // 0 = any that is free
  size_t max_connections = 4096;
  HttpLimits limits = {};
  size_t max_pending_bytes = 16 << 20;                // of streams that a client does not read; more ends it
  std::chrono::milliseconds request_timeout{30'000};  // from its first byte to its last
  std::chrono::milliseconds write_timeout{30'000};    // while a client reads nothing of its answer
  std::chrono::milliseconds idle_timeout{120'000};    // between requests
  std::chrono::milliseconds grace{10'000};            // for answers that are under way when it is to stop
  HttpHeaders headers = {};                           // of every answer
  bool stop_at_signals = false;                       // SIGINT and SIGTERM, which must be blocked in all threads
};

// SIGINT and SIGTERM, in this thread and those that it starts: a server that is to stop at them reads them itself.
void block_stop_signals();

// Answers requests. All calls come from the thread that is in HttpServer::run.
class HttpService {
 public:
  virtual ~HttpService() = default;
  // Answers now or later; further requests of the connection wait until then. A HEAD comes as a GET: the server leaves
  // the body of its answer out.
  virtual void requested(ConnectionId connection, HttpRequest&& request) = 0;
  // The client left before it had its answer, or the server ends; nothing can be sent to it any more.
  virtual void left(ConnectionId connection) = 0;
  // How a request is refused that never gets here.
  virtual HttpResponse refusal(int status, const std::string& why) = 0;
  // When `wake` is to be called next, which it is at other times too; nothing = not needed.
  virtual std::optional<ServerTime> next_wake() const { return std::nullopt; }
  virtual void wake() {}
  // The server will stop: only answers that are under way are still wanted.
  virtual void stopping() {}
};

// Why not a thread for each connection: docs/endpoint.md.
class HttpServer {
 public:
  // Listens. InputError when the address is wrong or taken.
  HttpServer(const HttpServerSettings& settings, HttpService& service);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  int port() const { return port_; }
  size_t connections() const { return connections_; }

  // Serves until `stop`, or a signal.
  void run();
  void stop();  // from any thread

  // For the service. What is written goes out at the end of its turn; a connection that has left takes nothing.
  void respond(ConnectionId id, const HttpResponse& response);
  void begin_stream(ConnectionId id, const HttpResponse& head);  // its body is not used
  void write(ConnectionId id, std::string_view data);
  // The same without a copy: where more of the stream is to be appended, in this turn; null for one that has left.
  std::string* stream_buffer(ConnectionId id);
  void end_stream(ConnectionId id);

 private:
  enum class Phase : uint8_t {
    reading,    // a request, or waits for one
    answering,  // the service has it
    leaving     // the last answer was given: what still comes is thrown away until the client has closed
  };
  struct Connection {
    explicit Connection(const HttpLimits& limits) : parser(limits) {}
    ConnectionId id = 0;
    FileDescriptor socket;
    HttpRequestParser parser;
    std::string unread;  // of requests behind the one that is answered
    std::string unsent;
    std::string pending;     // of a stream, to go out as one chunk
    size_t whole_bytes = 0;  // of the last answer that is no stream: it is there already, and goes out in whole
    Phase phase = Phase::reading;
    uint32_t events = 0;  // that it is registered for
    bool keep_alive = true, told_to_continue = false, dirty = false, shut = false;
    bool head_only = false;  // its request was a HEAD
    bool chunked = true;     // its streams come in chunks; else as they are
    ServerTime since;        // the last progress of what it does now
  };

  void accept_all();
  void handle(ConnectionId id, uint32_t events);
  bool read_some(Connection& connection);
  void parse(Connection& connection);
  void refuse(Connection& connection, int status, const std::string& why);
  void end_answer(Connection& connection);
  void mark_dirty(Connection& connection);
  void flush_dirty();
  void flush(Connection& connection);
  void listen_for(Connection& connection);
  Connection& add(std::unique_ptr<Connection> connection);
  void drop(ConnectionId id);
  void sweep();
  void begin_stop();
  bool may_end() const;
  void arm_timer();
  Connection* find(ConnectionId id);
  HttpResponse with_headers(HttpResponse response) const;
  static void take_plain(Connection& connection);

  HttpServerSettings settings_;
  HttpService* service_;
  FileDescriptor listener_, poll_, timer_, stop_event_, signals_;
  int port_ = 0;
  // Places of connections, null where free. An id is the place and a number of its own.
  std::vector<std::unique_ptr<Connection>> places_;
  std::vector<size_t> free_places_;
  uint64_t next_number_ = 1;
  size_t connections_ = 0;
  std::vector<ConnectionId> dirty_;
  std::vector<char> buffer_;
  ServerTime now_, next_sweep_, stop_by_;
  std::optional<ServerTime> armed_;
  bool stopping_ = false;
};

}  // namespace foretoken
