#include "app/http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// What epoll calls those that are no connection.
enum Source : ConnectionId { listener_source, timer_source, stop_source, signal_source, first_connection };

constexpr std::chrono::milliseconds sweep_interval{500};
constexpr std::chrono::milliseconds leave_timeout{2000};
constexpr size_t most_unread_bytes = 64 * 1024;  // of further requests while one is answered
constexpr size_t more_descriptors = 64;          // files, the listener, refused connections that are leaving

[[noreturn]] void fail(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

FileDescriptor opened(int number, const char* call) {
  if (number < 0) fail(call);
  return FileDescriptor(number);
}

void allow_descriptors(size_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  const rlim_t wanted = std::min<rlim_t>(count, limit.rlim_max);
  limit.rlim_cur = wanted;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || wanted < count) {
    throw InputError({.source = "--max-connections",
                      .value = fmt::format("{} open files needed", count),
                      .expected = fmt::format("at most {} (ulimit -n)", limit.rlim_max)});
  }
}

FileDescriptor listening(const std::string& host, int port) {
  sockaddr_in6 six{.sin6_family = AF_INET6, .sin6_port = htons(static_cast<uint16_t>(port))};
  sockaddr_in four{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  const bool is_six = inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1;
  if (!is_six && inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) {
    throw InputError({.source = "--host", .value = printable(host), .expected = "an address: 127.0.0.1, 0.0.0.0, ::1"});
  }
  const int family = is_six ? AF_INET6 : AF_INET;
  FileDescriptor listener = opened(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto* address = is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (bind(listener.get(), address, is_six ? sizeof six : sizeof four) != 0 || listen(listener.get(), 4096) != 0) {
    throw InputError({.source = "--port",
                      .value = fmt::format("{} of {}: {}", port, host, std::strerror(errno)),
                      .expected = "a free port; 0 = any"});
  }
  return listener;
}

int port_of(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) fail("getsockname");
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

sigset_t stop_signal_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

FileDescriptor stop_signals() {
  const sigset_t set = stop_signal_set();
  return opened(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd");
}

void watch(int poll, int descriptor, ConnectionId source) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = source}};
  if (epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

// A client that fell behind once does not keep the memory of that for good.
void empty(std::string& buffer) {
  constexpr size_t most_kept = 4096;
  if (buffer.capacity() > most_kept) buffer = std::string();
  buffer.clear();
}

void drain(int descriptor) {
  std::array<char, 512> bytes;
  while (read(descriptor, bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signal_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

HttpServer::HttpServer(const HttpServerSettings& settings, HttpService& service)
    : settings_(settings),
      service_(&service),
      poll_(opened(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      timer_(opened(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")),
      stop_event_(opened(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      next_id_(first_connection),
      buffer_(most_unread_bytes) {
  allow_descriptors(settings_.max_connections + more_descriptors);
  listener_ = listening(settings_.host, settings_.port);
  port_ = port_of(listener_.get());
  watch(poll_.get(), listener_.get(), listener_source);
  watch(poll_.get(), timer_.get(), timer_source);
  watch(poll_.get(), stop_event_.get(), stop_source);
  if (settings_.stop_at_signals) {
    signals_ = stop_signals();
    watch(poll_.get(), signals_.get(), signal_source);
  }
}
HttpServer::~HttpServer() = default;

void HttpServer::run() {
  std::array<epoll_event, 256> events;
  now_ = std::chrono::steady_clock::now();
  next_sweep_ = now_ + sweep_interval;
  while (!may_end()) {
    arm_timer();
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next_sweep_ - now_).count();
    const int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(std::max<int64_t>(0, wait)));
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    now_ = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      switch (event.data.u64) {
        case listener_source:
          accept_all();
          break;
        case timer_source:
          drain(timer_.get());
          armed_.reset();
          break;
        case stop_source:
        case signal_source:
          begin_stop();
          break;
        default:
          handle(event.data.u64, event.events);
      }
    }
    service_->wake();
    flush_dirty();
    if (now_ >= next_sweep_) sweep();
  }
  connections_.clear();
}

void HttpServer::stop() {
  const uint64_t one = 1;
  // Only an event that was told before could keep it from being written.
  [[maybe_unused]] const auto written = ::write(stop_event_.get(), &one, sizeof one);
}

void HttpServer::begin_stop() {
  drain(stop_event_.get());
  if (signals_.get() >= 0) drain(signals_.get());
  if (stopping_) {  // told twice: at once
    stop_by_ = now_;
    return;
  }
  stopping_ = true;
  stop_by_ = now_ + settings_.grace;
  listener_.reset();
  service_->stopping();
}

bool HttpServer::may_end() const {
  if (!stopping_) return false;
  if (now_ >= stop_by_) return true;
  return std::all_of(connections_.begin(), connections_.end(), [](const auto& entry) {
    const Connection& connection = *entry.second;
    return connection.phase != Phase::answering && connection.unsent.empty();
  });
}

void HttpServer::arm_timer() {
  const std::optional<ServerTime> wake = service_->next_wake();
  if (wake == armed_) return;
  armed_ = wake;
  itimerspec when{};
  if (wake) {
    // Zero would disarm it.
    const int64_t ns =
        std::max<int64_t>(1, std::chrono::duration_cast<std::chrono::nanoseconds>(wake->time_since_epoch()).count());
    when.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  if (timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) != 0) fail("timerfd_settime");
}

void HttpServer::accept_all() {
  while (true) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) return;                                                           // no more, or none for now
    if (connections_.size() >= settings_.max_connections + more_descriptors / 2) continue;  // closed at once
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto connection = std::make_unique<Connection>(settings_.limits);
    connection->id = next_id_++;
    connection->socket = std::move(socket);
    connection->since = now_;
    connection->events = EPOLLIN | EPOLLRDHUP;
    epoll_event event{.events = connection->events, .data = {.u64 = connection->id}};
    if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, connection->socket.get(), &event) != 0) continue;
    Connection& added = *connection;
    connections_.emplace(added.id, std::move(connection));
    if (connections_.size() > settings_.max_connections) {
      refuse(added, 429, fmt::format("more than {} connections", settings_.max_connections));
    }
  }
}

HttpServer::Connection* HttpServer::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void HttpServer::handle(ConnectionId id, uint32_t events) {
  Connection* connection = find(id);
  if (connection == nullptr) return;  // dropped in this turn
  if ((events & EPOLLIN) != 0 && !read_some(*connection)) return drop(id);
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return drop(id);
  // A client that will send no more has left, as for other servers of streams; `read_some` sees it where it reads.
  if ((events & EPOLLRDHUP) != 0 && connection->phase == Phase::answering) return drop(id);
  if ((events & EPOLLOUT) != 0) mark_dirty(*connection);
}

// False when the client has closed.
bool HttpServer::read_some(Connection& connection) {
  const ssize_t count = recv(connection.socket.get(), buffer_.data(), buffer_.size(), 0);
  if (count == 0) return false;
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (connection.phase == Phase::leaving) return true;
  connection.unread.append(buffer_.data(), static_cast<size_t>(count));
  if (connection.phase == Phase::reading) parse(connection);
  listen_for(connection);
  return true;
}

void HttpServer::parse(Connection& connection) {
  HttpRequestParser& parser = connection.parser;
  if (!parser.started()) connection.since = now_;
  connection.unread.erase(0, parser.feed(connection.unread));
  if (parser.error_status() != 0) {
    refuse(connection, parser.error_status(), parser.error());
  } else if (parser.complete()) {
    HttpRequest request = parser.take();
    connection.keep_alive = request.keep_alive;
    connection.told_to_continue = false;
    connection.phase = Phase::answering;
    if (stopping_) return refuse(connection, 503, "the server is shutting down");
    service_->requested(connection.id, std::move(request));
  } else if (parser.expects_continue() && !connection.told_to_continue) {
    connection.told_to_continue = true;
    connection.unsent += "HTTP/1.1 100 Continue\r\n\r\n";
    mark_dirty(connection);
  }
}

void HttpServer::refuse(Connection& connection, int status, const std::string& why) {
  connection.keep_alive = false;
  connection.unsent += response_bytes(service_->refusal(status, why), false);
  end_answer(connection);
}

void HttpServer::respond(ConnectionId id, const HttpResponse& response) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  connection->unsent += response_bytes(response, connection->keep_alive && !stopping_);
  end_answer(*connection);
}

void HttpServer::begin_stream(ConnectionId id, const HttpResponse& head) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  connection->unsent += stream_head(head, connection->keep_alive && !stopping_);
  mark_dirty(*connection);
}

void HttpServer::write(ConnectionId id, std::string_view data) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  connection->pending += data;
  mark_dirty(*connection);
}

void HttpServer::end_stream(ConnectionId id) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  append_chunk(connection->unsent, connection->pending);
  empty(connection->pending);
  connection->unsent += last_chunk;
  end_answer(*connection);
}

void HttpServer::end_answer(Connection& connection) {
  connection.phase = connection.keep_alive && !stopping_ ? Phase::reading : Phase::leaving;
  connection.since = now_;
  mark_dirty(connection);
}

void HttpServer::mark_dirty(Connection& connection) {
  if (connection.dirty) return;
  connection.dirty = true;
  dirty_.push_back(connection.id);
}

void HttpServer::flush_dirty() {
  // Further requests of a connection may be answered at once, and so come here again.
  for (size_t i = 0; i < dirty_.size(); ++i) {
    if (Connection* connection = find(dirty_[i])) {
      connection->dirty = false;
      flush(*connection);
    }
  }
  dirty_.clear();
}

void HttpServer::flush(Connection& connection) {
  append_chunk(connection.unsent, connection.pending);
  empty(connection.pending);
  const size_t before = connection.sent;
  while (connection.sent < connection.unsent.size()) {
    const ssize_t count = send(connection.socket.get(), connection.unsent.data() + connection.sent,
                               connection.unsent.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return drop(connection.id);
    connection.sent += static_cast<size_t>(count);
  }
  if (connection.sent > before) connection.since = now_;
  if (connection.sent < connection.unsent.size()) {
    connection.unsent.erase(0, connection.sent);
    connection.sent = 0;
    if (connection.unsent.size() > settings_.max_pending_bytes) return drop(connection.id);
    if ((connection.events & EPOLLOUT) == 0) connection.since = now_;  // until now it took all
    return listen_for(connection);
  }
  empty(connection.unsent);
  connection.sent = 0;
  if (connection.phase == Phase::leaving) {
    if (!connection.shut) shutdown(connection.socket.get(), SHUT_WR);
    connection.shut = true;
  } else if (connection.phase == Phase::reading && !connection.unread.empty()) {
    parse(connection);
  }
  listen_for(connection);
}

void HttpServer::listen_for(Connection& connection) {
  uint32_t events = EPOLLRDHUP;
  // While an answer is made, so much of what follows is read that a client which leaves is seen.
  if (connection.phase != Phase::answering || connection.unread.size() < most_unread_bytes) events |= EPOLLIN;
  if (connection.phase == Phase::leaving) events = EPOLLIN;  // until its end is read
  if (!connection.unsent.empty()) events |= EPOLLOUT;
  if (events == connection.events) return;
  connection.events = events;
  epoll_event event{.events = events, .data = {.u64 = connection.id}};
  if (epoll_ctl(poll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event) != 0) fail("epoll_ctl");
}

void HttpServer::drop(ConnectionId id) {
  const auto found = connections_.find(id);
  const bool answering = found->second->phase == Phase::answering;
  connections_.erase(found);
  if (answering) service_->left(id);
}

void HttpServer::sweep() {
  next_sweep_ = now_ + sweep_interval;
  std::vector<ConnectionId> late;
  for (const auto& [id, connection] : connections_) {
    const auto waited = now_ - connection->since;
    const bool blocked = !connection->unsent.empty();
    const bool too_late = blocked                                 ? waited > settings_.write_timeout
                          : connection->phase == Phase::leaving   ? waited > leave_timeout
                          : connection->phase == Phase::answering ? false
                          : connection->parser.started()          ? waited > settings_.request_timeout
                                                                  : waited > settings_.idle_timeout;
    if (too_late) late.push_back(id);
  }
  for (const ConnectionId id : late) drop(id);
}

}  // namespace foretoken
