#include "app/http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// What epoll calls those that are no connection.
enum Source : ConnectionId { listener_source, timer_source, stop_source, signal_source };

// Above every Source, as numbers begin with 1.
constexpr ConnectionId connection_id(size_t place, uint64_t number) {
  return number << 32 | place;
}
constexpr size_t place_of(ConnectionId id) {
  return id & 0xffff'ffff;
}

constexpr std::chrono::milliseconds sweep_interval{500};
constexpr std::chrono::milliseconds leave_timeout{2000};
constexpr size_t most_unread_bytes = size_t{64} << 10;  // of further requests while one is answered
constexpr size_t more_descriptors = 64;                 // files, the listener, refused connections that are leaving

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

// Sends `unsent`, then `chunk` as one of a stream, without joining them first; what is left is in `unsent` then. The
// bytes that went out; nothing when the client has gone.
std::optional<size_t> send_some(int socket, std::string& unsent, std::string& chunk) {
  std::array<char, 24> size_line{};
  size_t size_length = 0;
  if (!chunk.empty()) {
    size_length = static_cast<size_t>(fmt::format_to(size_line.data(), "{:x}\r\n", chunk.size()) - size_line.data());
  }
  char end_line[] = "\r\n";
  std::array<iovec, 4> parts = {iovec{unsent.data(), unsent.size()}, iovec{size_line.data(), size_length},
                                iovec{chunk.data(), chunk.size()},
                                iovec{end_line, chunk.empty() ? 0 : sizeof end_line - 1}};
  size_t all = 0;
  for (const iovec& part : parts) all += part.iov_len;
  if (all == 0) return 0;
  const msghdr message{.msg_iov = parts.data(), .msg_iovlen = parts.size()};
  ssize_t count = -1;
  do {
    count = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno != EAGAIN) return std::nullopt;
  const size_t sent = count < 0 ? 0 : static_cast<size_t>(count);
  if (sent == all) {
    unsent.clear();
    return sent;
  }
  std::string left;
  left.reserve(all - sent);
  size_t skip = sent;
  for (const iovec& part : parts) {
    const size_t gone = std::min(skip, part.iov_len);
    left.append(static_cast<const char*>(part.iov_base) + gone, part.iov_len - gone);
    skip -= gone;
  }
  unsent = std::move(left);
  return sent;
}

void drain(int descriptor) {
  std::array<char, 512> bytes;  // NOLINT: nobody reads them
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
  std::array<epoll_event, 256> events{};
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
  // Answers that the grace has cut off: the service hears of each.
  std::vector<ConnectionId> cut_off;
  for (const std::unique_ptr<Connection>& connection : places_) {
    if (connection != nullptr && connection->phase == Phase::answering) cut_off.push_back(connection->id);
  }
  for (const ConnectionId id : cut_off) {
    if (find(id) != nullptr) drop(id);
  }
  places_.clear();
  free_places_.clear();
  connections_ = 0;
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
  return std::all_of(places_.begin(), places_.end(), [](const std::unique_ptr<Connection>& connection) {
    return connection == nullptr || (connection->phase != Phase::answering && connection->unsent.empty());
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
    if (socket.get() < 0) return;                                                    // no more, or none for now
    if (connections_ >= settings_.max_connections + more_descriptors / 2) continue;  // closed at once
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection& added = add(std::make_unique<Connection>(settings_.limits));
    added.socket = std::move(socket);
    added.since = now_;
    added.events = EPOLLIN | EPOLLRDHUP;
    epoll_event event{.events = added.events, .data = {.u64 = added.id}};
    if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, added.socket.get(), &event) != 0) {
      drop(added.id);
    } else if (connections_ > settings_.max_connections) {
      refuse(added, 429, fmt::format("more than {} connections", settings_.max_connections));
    }
  }
}

HttpServer::Connection& HttpServer::add(std::unique_ptr<Connection> connection) {
  if (free_places_.empty()) {
    free_places_.push_back(places_.size());
    places_.emplace_back();
  }
  const size_t place = free_places_.back();
  free_places_.pop_back();
  connection->id = connection_id(place, next_number_++);
  ++connections_;
  places_[place] = std::move(connection);
  return *places_[place];
}

HttpServer::Connection* HttpServer::find(ConnectionId id) {
  const size_t place = place_of(id);
  Connection* const there = place < places_.size() ? places_[place].get() : nullptr;
  return there != nullptr && there->id == id ? there : nullptr;
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
    connection.chunked = request.takes_chunks;
    connection.head_only = request.method == "HEAD";
    if (connection.head_only) request.method = "GET";
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
  connection.unsent += response_bytes(with_headers(service_->refusal(status, why)), false, connection.head_only);
  end_answer(connection);
}

void HttpServer::respond(ConnectionId id, const HttpResponse& response) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  const std::string bytes =
      response_bytes(with_headers(response), connection->keep_alive && !stopping_, connection->head_only);
  connection->whole_bytes = bytes.size();
  connection->unsent += bytes;
  end_answer(*connection);
}

void HttpServer::begin_stream(ConnectionId id, const HttpResponse& head) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  if (!connection->chunked) connection->keep_alive = false;  // its end is that of the connection
  connection->unsent += stream_head(with_headers(head), connection->keep_alive && !stopping_, connection->chunked);
  mark_dirty(*connection);
}

void HttpServer::write(ConnectionId id, std::string_view data) {
  if (std::string* const out = stream_buffer(id)) *out += data;
}

std::string* HttpServer::stream_buffer(ConnectionId id) {
  Connection* connection = find(id);
  if (connection == nullptr) return nullptr;
  mark_dirty(*connection);
  return &connection->pending;
}

void HttpServer::end_stream(ConnectionId id) {
  Connection* connection = find(id);
  if (connection == nullptr) return;
  if (connection->chunked && !connection->head_only) {
    append_chunk(connection->unsent, connection->pending);
    connection->unsent += last_chunk;
  } else {
    take_plain(*connection);
  }
  empty(connection->pending);
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
  for (size_t i = 0; i < dirty_.size(); ++i) {  // NOLINT(modernize-loop-convert): it grows
    if (Connection* connection = find(dirty_[i])) {
      connection->dirty = false;
      flush(*connection);
    }
  }
  dirty_.clear();
}

// What is pending goes out as it is, or, to a HEAD, not at all.
void HttpServer::take_plain(Connection& connection) {
  if (!connection.head_only) connection.unsent += connection.pending;
  connection.pending.clear();
}

HttpResponse HttpServer::with_headers(HttpResponse response) const {
  response.headers.insert(response.headers.end(), settings_.headers.begin(), settings_.headers.end());
  return response;
}

void HttpServer::flush(Connection& connection) {
  if (!connection.chunked || connection.head_only) take_plain(connection);
  const std::optional<size_t> sent = send_some(connection.socket.get(), connection.unsent, connection.pending);
  if (!sent) return drop(connection.id);
  if (*sent > 0) connection.since = now_;
  empty(connection.pending);
  if (!connection.unsent.empty()) {
    if (connection.unsent.size() > settings_.max_pending_bytes + connection.whole_bytes) return drop(connection.id);
    if ((connection.events & EPOLLOUT) == 0) connection.since = now_;  // until now it took all
    return listen_for(connection);
  }
  empty(connection.unsent);
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
  const size_t place = place_of(id);
  const bool answering = places_[place]->phase == Phase::answering;
  places_[place].reset();
  free_places_.push_back(place);
  --connections_;
  if (answering) service_->left(id);
}

void HttpServer::sweep() {
  next_sweep_ = now_ + sweep_interval;
  std::vector<ConnectionId> late;
  for (const std::unique_ptr<Connection>& connection : places_) {
    if (connection == nullptr) continue;
    const auto waited = now_ - connection->since;
    const bool blocked = !connection->unsent.empty();
    const bool too_late = blocked                                 ? waited > settings_.write_timeout
                          : connection->phase == Phase::leaving   ? waited > leave_timeout
                          : connection->phase == Phase::answering ? false
                          : connection->parser.started()          ? waited > settings_.request_timeout
                                                                  : waited > settings_.idle_timeout;
    if (too_late) late.push_back(connection->id);
  }
  for (const ConnectionId id : late) drop(id);
}

}  // namespace foretoken
