#include "app/observe/load_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "app/http/file_descriptor.h"
#include "app/http/message.h"
#include "app/observe/client_stream.h"
#include "app/observe/completion_stream.h"
#include "app/observe/prompt_text.h"
#include "app/observe/response_parser.h"
#include "base/error.h"
#include "base/json.h"
#include "base/portable_math.h"
#include "base/text.h"
#include "serving/runs/prometheus_text.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Null where the server is asked in the open.
std::unique_ptr<const TlsTrust> trust_of(const LoadClientSettings& settings) {
  if (!settings.server.encrypted) return nullptr;
  return std::make_unique<const TlsTrust>(settings.authorities);
}

// One try of one request, or a look at the server's metrics.
struct Exchange {
  enum class Purpose : uint8_t { completion, metrics };
  Purpose purpose = Purpose::completion;
  size_t record = 0;  // place in the run's requests
  int64_t id = 0;     // of the load
  Clock::time_point sent, last;
  bool has_first = false;
  CompletionStream answer;
};

struct ClientConnection {
  ClientStream stream;
  bool connected = false, reused = false, wants_write = false;
  size_t first_address = 0, addresses_tried = 0;  // of the server's
  std::string unsent;
  size_t sent_bytes = 0;
  HttpResponseParser parser;
  std::unique_ptr<Exchange> exchange;  // null = idle
};

struct Retry {
  Clock::time_point when;
  size_t record;
  Request request;
};

// A few requests of the load at a time, whatever their arrivals.
class WarmupSource final : public RequestSource {
 public:
  WarmupSource(std::unique_ptr<RequestSource> load, int64_t count) : load_(std::move(load)), left_(count) {}
  std::optional<Picoseconds> next_arrival() override {
    const bool may_start = left_ > 0 && open_ < at_once && load_->next_arrival();
    return may_start ? std::optional(now_) : std::nullopt;
  }
  Request next() override {
    --left_;
    ++open_;
    return load_->next();
  }
  void ended(int64_t id, Picoseconds when) override {
    --open_;
    now_ = std::max(now_, when);
    load_->ended(id, when);
  }

 private:
  static constexpr int64_t at_once = 4;
  std::unique_ptr<RequestSource> load_;
  int64_t left_, open_ = 0;
  Picoseconds now_ = 0;
};

class LoadClient {
 public:
  explicit LoadClient(const LoadClientSettings& settings)
      : settings_(settings),
        addresses_(resolve(settings.server)),
        trust_(trust_of(settings)),
        poll_(epoll_create1(EPOLL_CLOEXEC)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    watch(timer_.get(), EPOLLIN, timer_key);
    if (!settings.stop_at_signals) return;
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stops, &mask_before_);
    signals_ = FileDescriptor(signalfd(-1, &stops, SFD_NONBLOCK | SFD_CLOEXEC));
    watch(signals_.get(), EPOLLIN, signals_key);
  }
  ~LoadClient() {
    if (settings_.stop_at_signals) pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  MeasuredRun run(RequestSource& source, bool is_measured) {
    source_ = &source;
    run_ = MeasuredRun{};
    requests_.clear();
    shown_ = ClientProgress{};
    scrapes_ = is_measured && settings_.metrics_interval_s > 0;
    start_ = now_ = Clock::now();
    next_sample_ = start_;
    next_progress_ = start_ + std::chrono::seconds(1);
    const auto end =
        start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings_.most_seconds));
    while (true) {
      now_ = Clock::now();
      if (stopped_ || now_ >= end) break;
      start_due();
      const bool is_over = shown_.in_flight == 0 && waiting_.empty() && retries_.empty() && !source.next_arrival();
      if (is_over) break;
      show();
      wait_until(std::min(next_wake(), end));
    }
    cancel_rest();
    if (is_measured && scrapes_ && !run_.samples.empty()) sample_last();
    return std::move(run_);
  }

 private:
  static constexpr uint64_t timer_key = UINT64_MAX, signals_key = UINT64_MAX - 1;

  Picoseconds simulated(Clock::time_point when) const {
    return std::max<Picoseconds>(0, to_picoseconds(Seconds(seconds_between(start_, when))));
  }
  Clock::time_point wall(Picoseconds when) const { return start_ + std::chrono::nanoseconds(when / 1000 + 1); }

  void watch(int descriptor, uint32_t events, uint64_t key) const {
    epoll_event event{.events = events, .data = {.u64 = key}};
    if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      throw std::runtime_error(fmt::format("epoll: {}", std::strerror(errno)));
    }
  }

  void start_due() {
    while (!retries_.empty() && retries_.front().when <= now_) {
      Retry retry = std::move(retries_.front());
      retries_.pop_front();
      send(retry.record, std::move(retry.request));
    }
    while (!waiting_.empty() && shown_.in_flight < settings_.most_open) {
      const size_t record = waiting_.front();
      waiting_.pop_front();
      send(record, std::move(requests_.at(record)));
    }
    for (auto arrival = source_->next_arrival(); arrival && wall(*arrival) <= now_; arrival = source_->next_arrival()) {
      Request request = source_->next();
      const size_t record = run_.requests.size();
      run_.requests.push_back({.arrival_s = to_seconds(request.arrival).value(),
                               .input_tokens = request.input_tokens,
                               .output_tokens = request.output_tokens,
                               .session = request.session,
                               .prefix_block_tokens = request.prefix_block_tokens,
                               .prefix_blocks = request.prefix_blocks,
                               .status = MeasuredStatus::cancelled});
      ++shown_.sent;
      if (shown_.in_flight >= settings_.most_open) {
        requests_.emplace(record, std::move(request));
        waiting_.push_back(record);
      } else {
        send(record, std::move(request));
      }
    }
    if (scrapes_ && now_ >= next_sample_ && !scraping_) scrape();
  }

  std::string body_for(const Request& request) const {
    const std::string prompt = prompt_text(request, settings_.seed);
    const std::string model = Json(settings_.model).dump(0);
    std::string body = fmt::format(
        "{{\"model\":{},\"max_tokens\":{},\"temperature\":0,\"stream\":true,\"stream_options\":{{\"include_usage\":"
        "true}}",
        model, std::max<int64_t>(1, request.output_tokens));
    if (settings_.ignore_eos) body += ",\"ignore_eos\":true";
    if (request.priority != 0) body += fmt::format(",\"priority\":{}", request.priority);
    if (settings_.chat) {
      body += fmt::format(",\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}]}}", prompt);
    } else {
      body += fmt::format(",\"prompt\":\"{}\"}}", prompt);
    }
    return body;
  }

  std::string head_for(std::string_view method, std::string_view path, size_t length) const {
    const ServerAddress& server = settings_.server;
    std::string head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: foretoken\r\nAccept: */*\r\n", method,
                                   server.path, path, host_and_port(server.host, server.port));
    if (!settings_.api_key.empty()) head += fmt::format("Authorization: Bearer {}\r\n", settings_.api_key);
    if (length > 0) head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", length);
    return head + "\r\n";
  }

  void send(size_t record, Request request) {
    auto exchange = std::make_unique<Exchange>();
    exchange->record = record;
    exchange->id = request.id;
    const std::string body = body_for(request);
    const char* path = settings_.chat ? "/v1/chat/completions" : "/v1/completions";
    std::string message = head_for("POST", path, body.size()) + body;
    requests_.insert_or_assign(record, std::move(request));
    ++shown_.in_flight;
    exchange->sent = exchange->last = Clock::now();
    MeasuredRequest& measured = run_.requests[record];
    measured.sent_s = std::max(0.0, seconds_between(start_, exchange->sent));
    // A load that is on time is so by its own clock.
    if (*measured.sent_s < measured.arrival_s) measured.sent_s = measured.arrival_s;
    start(std::move(exchange), std::move(message));
  }

  void scrape() {
    auto exchange = std::make_unique<Exchange>();
    exchange->purpose = Exchange::Purpose::metrics;
    exchange->sent = Clock::now();
    scraping_ = true;
    next_sample_ =
        now_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings_.metrics_interval_s));
    start(std::move(exchange), head_for("GET", "/metrics", 0));
  }

  void start(std::unique_ptr<Exchange> exchange, std::string message) {
    size_t place = connections_.size();
    if (!idle_.empty()) {
      place = idle_.back();
      idle_.pop_back();
      connections_[place]->reused = true;
      connections_[place]->parser.begin_next();
    } else if (!free_.empty()) {
      place = free_.back();
      free_.pop_back();
    } else {
      connections_.emplace_back();
    }
    auto& connection = connections_[place];
    const bool is_new = connection == nullptr;
    if (is_new) {
      connection = std::make_unique<ClientConnection>();
      connection->first_address = answering_;
    }
    connection->unsent = std::move(message);
    connection->sent_bytes = 0;
    connection->exchange = std::move(exchange);
    if (is_new && !connect_to(*connection, place)) return;
    if (connection->connected) flush(place);
  }

  // To the first of the addresses that it has not tried; false where none is left, which ends its exchange.
  bool connect_to(ClientConnection& connection, size_t place) {
    std::string why;
    while (connection.addresses_tried < addresses_.size()) {
      ++connection.addresses_tried;
      const SocketAddress& address = addresses_[address_of(connection)];
      FileDescriptor opened(socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (opened.get() < 0) {
        why = std::string("no socket: ") + std::strerror(errno);
        continue;
      }
      const int on = 1;
      setsockopt(opened.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const int done = connect(opened.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size);
      if (done != 0 && errno != EINPROGRESS) {
        why = std::strerror(errno);
        continue;
      }
      connection.stream = ClientStream(std::move(opened), trust_.get(), settings_.server.host);
      connection.connected = done == 0;
      connection.wants_write = true;
      watch(connection.stream.descriptor(), EPOLLIN | EPOLLOUT, place);
      return true;
    }
    end_exchange(place, why, true);
    return false;
  }

  // That it tried last.
  size_t address_of(const ClientConnection& connection) const {
    return (connection.first_address + connection.addresses_tried - 1) % addresses_.size();
  }

  void listen_for_write(ClientConnection& connection, size_t place, bool wanted) const {
    if (connection.wants_write == wanted) return;
    connection.wants_write = wanted;
    epoll_event event{.events = EPOLLIN | (wanted ? uint32_t{EPOLLOUT} : 0U), .data = {.u64 = place}};
    epoll_ctl(poll_.get(), EPOLL_CTL_MOD, connection.stream.descriptor(), &event);
  }

  void flush(size_t place) {
    ClientConnection& connection = *connections_[place];
    while (connection.sent_bytes < connection.unsent.size()) {
      const std::string_view rest = std::string_view(connection.unsent).substr(connection.sent_bytes);
      const ClientStream::Moved moved = connection.stream.send(rest);
      switch (moved.state) {
        case ClientStream::State::moved:
          connection.sent_bytes += moved.bytes;
          break;
        case ClientStream::State::wants_read:
        case ClientStream::State::wants_write:
          return listen_for_write(connection, place, moved.state == ClientStream::State::wants_write);
        case ClientStream::State::closed:
        case ClientStream::State::failed:
          return lose(place, moved.error.empty() ? "the server closed the connection" : moved.error);
      }
    }
    listen_for_write(connection, place, false);
  }

  void try_other_address(size_t place, int error) {
    ClientConnection& connection = *connections_[place];
    if (connection.addresses_tried == addresses_.size()) return lose(place, std::strerror(error));
    if (connect_to(connection, place) && connection.connected) flush(place);
  }

  void handle(size_t place, uint32_t events) {
    if (connections_[place] == nullptr) return;
    if (!connections_[place]->connected) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(connections_[place]->stream.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return try_other_address(place, error);
      if ((events & EPOLLOUT) == 0U) return;
      connections_[place]->connected = true;
      answering_ = address_of(*connections_[place]);
    }
    const ClientConnection& connection = *connections_[place];
    // A handshake of TLS reads before the first byte can be sent.
    if ((events & EPOLLOUT) != 0U || connection.sent_bytes < connection.unsent.size()) flush(place);
    if (connections_[place] != nullptr && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0U) read_some(place);
  }

  void read_some(size_t place) {
    while (connections_[place] != nullptr) {
      ClientConnection& connection = *connections_[place];
      const ClientStream::Moved moved = connection.stream.receive(buffer_);
      if (moved.state == ClientStream::State::wants_read) return;
      if (moved.state == ClientStream::State::wants_write) return listen_for_write(connection, place, true);
      if (moved.state == ClientStream::State::failed) return lose(place, moved.error);
      if (connection.exchange == nullptr) return drop(place);  // closed while idle
      now_ = Clock::now();
      try {
        if (moved.state == ClientStream::State::closed) {
          connection.parser.closed();
        } else {
          const std::string_view bytes(buffer_.data(), moved.bytes);
          connection.parser.feed(bytes, [&](std::string_view piece) { take_body(connection, piece); });
        }
        if (connection.parser.is_complete()) return end_answer(place);
      } catch (const InputError& error) {
        return lose(place, error.problem().expected);
      }
      // What TLS has decrypted already wakes nobody.
      if (moved.bytes < buffer_.size() && !connection.stream.is_encrypted()) return;
    }
  }

  void take_body(ClientConnection& connection, std::string_view piece) {
    Exchange& exchange = *connection.exchange;
    const bool streams = connection.parser.is_event_stream() && connection.parser.status() == 200;
    const int64_t events = exchange.answer.take(piece, streams);
    if (exchange.purpose != Exchange::Purpose::completion) return;
    MeasuredRequest& measured = run_.requests[exchange.record];
    for (int64_t i = 0; i < events; ++i) {
      if (exchange.has_first) {
        measured.gaps_s.push_back(seconds_between(exchange.last, now_));
      } else {
        measured.ttft_s = seconds_between(exchange.sent, now_);
        exchange.has_first = true;
      }
      exchange.last = now_;
    }
  }

  void end_answer(size_t place) {
    ClientConnection& connection = *connections_[place];
    Exchange& exchange = *connection.exchange;
    const int status = connection.parser.status();
    const bool streams = connection.parser.is_event_stream();
    if (exchange.purpose == Exchange::Purpose::metrics) {
      end_sample(status, exchange);
      return release(place);
    }
    if (status != 200) {
      const bool may_retry = status == 429 || status == 502 || status == 503 || status == 504;
      const std::string why = fmt::format("status {}: {}", status, server_error_text(exchange.answer.document()));
      return end_exchange(place, why, may_retry);
    }
    if (!streams) return end_exchange(place, "the server does not stream its answers", false);
    if (!exchange.answer.error().empty()) return end_exchange(place, exchange.answer.error(), false);
    MeasuredRequest& measured = run_.requests[exchange.record];
    const ServerUsage& usage = exchange.answer.usage();
    if (!exchange.has_first) return end_exchange(place, "the server sent no tokens", false);
    if (usage.prompt_tokens) measured.input_tokens = *usage.prompt_tokens;
    if (usage.cached_tokens) measured.cached_tokens = *usage.cached_tokens;
    measured.output_tokens = usage.completion_tokens.value_or(exchange.answer.text_events());
    measured.e2e_s = seconds_between(exchange.sent, exchange.last);
    measured.status = MeasuredStatus::completed;
    ++shown_.completed;
    end_request(exchange);
    release(place);
  }

  void end_request(const Exchange& exchange) {
    --shown_.in_flight;
    requests_.erase(exchange.record);
    source_->ended(exchange.id, simulated(now_));
  }

  // Failed, or to be sent again.
  void end_exchange(size_t place, const std::string& why, bool may_retry,
                    MeasuredStatus status = MeasuredStatus::failed) {
    const std::unique_ptr<Exchange> exchange = std::move(connections_[place]->exchange);
    drop(place);
    if (exchange->purpose == Exchange::Purpose::metrics) {
      scraping_ = false;
      return;
    }
    MeasuredRequest& measured = run_.requests[exchange->record];
    if (may_retry && !exchange->has_first && measured.retries < settings_.retries) {
      const double pause = std::min(30.0, 0.5 * portable_pow(2.0, static_cast<double>(measured.retries)));
      ++measured.retries;
      --shown_.in_flight;
      retries_.push_back(
          {.when = now_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause)),
           .record = exchange->record,
           .request = requests_.at(exchange->record)});
      std::stable_sort(retries_.begin(), retries_.end(),
                       [](const Retry& a, const Retry& b) { return a.when < b.when; });
      return;
    }
    measured.status = status;
    measured.error = why;
    measured.output_tokens = exchange->answer.text_events();
    ++shown_.failed;
    end_request(*exchange);
  }

  // A connection that the server had closed while it was idle is no fault of the request.
  void lose(size_t place, const std::string& why) {
    ClientConnection& connection = *connections_[place];
    if (connection.exchange == nullptr) return drop(place);
    if (connection.reused && !connection.parser.has_begun()) {
      std::unique_ptr<Exchange> exchange = std::move(connection.exchange);
      std::string message = std::move(connection.unsent);
      drop(place);
      return start(std::move(exchange), std::move(message));
    }
    end_exchange(place, why, true);
  }

  void release(size_t place) {
    ClientConnection& connection = *connections_[place];
    connection.exchange.reset();
    if (!connection.parser.keeps_alive()) return drop(place);
    idle_.push_back(place);
  }

  void drop(size_t place) {
    connections_[place].reset();
    std::erase(idle_, place);
    free_.push_back(place);
  }

  void end_sample(int status, const Exchange& exchange) {
    scraping_ = false;
    const std::optional<MetricsSample> sample =
        status == 200 ? parse_prometheus_text(exchange.answer.document()) : std::nullopt;
    if (!sample) {
      scrapes_ = false;
      run_.notes.push_back(fmt::format("the server has no /metrics of vLLM or SGLang (status {})", status));
      return;
    }
    run_.samples.push_back(*sample);
    run_.samples.back().time_s = std::max(0.0, seconds_between(start_, exchange.sent));
    if (run_.engine.empty()) run_.engine = prometheus_engine(exchange.answer.document());
  }

  // What the counters are in the end.
  void sample_last() {
    now_ = Clock::now();
    if (!scraping_) scrape();
    const auto until = now_ + std::chrono::seconds(2);
    while (scraping_ && Clock::now() < until) wait_until(until);
  }

  void cancel_rest() {
    for (size_t place = 0; place < connections_.size(); ++place) {
      if (connections_[place] == nullptr || connections_[place]->exchange == nullptr) continue;
      if (connections_[place]->exchange->purpose == Exchange::Purpose::metrics) continue;
      end_exchange(place, "the run was over", false, MeasuredStatus::cancelled);
    }
    waiting_.clear();
    retries_.clear();
    std::erase_if(run_.requests, [](const MeasuredRequest& request) { return !request.sent_s; });
  }

  Clock::time_point next_wake() {
    Clock::time_point next = next_progress_;
    if (scrapes_ && !scraping_) next = std::min(next, next_sample_);
    if (!retries_.empty()) next = std::min(next, retries_.front().when);
    if (const auto arrival = source_->next_arrival()) next = std::min(next, wall(*arrival));
    return next;
  }

  void wait_until(Clock::time_point when) {
    const auto left =
        std::max<int64_t>(1, std::chrono::duration_cast<std::chrono::nanoseconds>(when - Clock::now()).count());
    const itimerspec alarm{.it_interval = {},
                           .it_value = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000}};
    timerfd_settime(timer_.get(), 0, &alarm, nullptr);
    std::array<epoll_event, 256> events;
    const int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), -1);
    now_ = Clock::now();
    for (int i = 0; i < count; ++i) {
      const uint64_t key = events[static_cast<size_t>(i)].data.u64;
      if (key == timer_key) {
        uint64_t expirations = 0;
        [[maybe_unused]] const ssize_t bytes = read(timer_.get(), &expirations, sizeof expirations);
      } else if (key == signals_key) {
        signalfd_siginfo taken;  // else it would end the program once the mask is as before
        [[maybe_unused]] const ssize_t bytes = read(signals_.get(), &taken, sizeof taken);
        stopped_ = true;
      } else {
        handle(key, events[static_cast<size_t>(i)].events);
      }
    }
  }

  void show() {
    if (now_ < next_progress_) return;
    next_progress_ = now_ + std::chrono::seconds(1);
    time_out();
    shown_.seconds = seconds_between(start_, now_);
    if (settings_.progress) settings_.progress(shown_);
  }

  void time_out() {
    for (size_t place = 0; place < connections_.size(); ++place) {
      if (connections_[place] == nullptr || connections_[place]->exchange == nullptr) continue;
      if (seconds_between(connections_[place]->exchange->sent, now_) < settings_.request_timeout_s) continue;
      end_exchange(place, fmt::format("no answer within {} s", number_text(settings_.request_timeout_s)), false,
                   MeasuredStatus::timed_out);
    }
  }

  LoadClientSettings settings_;
  std::vector<SocketAddress> addresses_;
  size_t answering_ = 0;  // of these: the one that was reached last
  std::unique_ptr<const TlsTrust> trust_;
  FileDescriptor poll_, timer_, signals_;
  sigset_t mask_before_{};
  std::vector<std::unique_ptr<ClientConnection>> connections_;
  std::vector<size_t> idle_, free_;
  std::unordered_map<size_t, Request> requests_;  // in flight or waiting, by record
  std::deque<size_t> waiting_;
  std::deque<Retry> retries_;
  RequestSource* source_ = nullptr;
  MeasuredRun run_;
  ClientProgress shown_;
  Clock::time_point start_, now_, next_sample_, next_progress_;
  bool scrapes_ = false, scraping_ = false, stopped_ = false;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
};

// One small question, answered whole.
std::string get(const LoadClientSettings& settings, std::string_view path) {
  FileDescriptor connection;
  int why_not = 0;
  for (const SocketAddress& address : resolve(settings.server)) {
    FileDescriptor opened(socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(opened.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(opened.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(opened.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) == 0) {
      connection = std::move(opened);
      break;
    }
    why_not = errno;
  }
  const ServerAddress& server = settings.server;
  const auto fail = [&](const std::string& why) {
    throw InputError({.source = server.flag,
                      .value = printable(server.written),
                      .expected = fmt::format("an OpenAI-compatible server that answers {} ({})", path, why)});
  };
  const std::unique_ptr<const TlsTrust> trust = trust_of(settings);
  if (connection.get() < 0) fail(std::strerror(why_not));
  std::string message = fmt::format("GET {}{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", server.path, path,
                                    host_and_port(server.host, server.port));
  if (!settings.api_key.empty()) message += fmt::format("Authorization: Bearer {}\r\n", settings.api_key);
  message += "\r\n";
  ClientStream stream(std::move(connection), trust.get(), server.host);
  const ClientStream::Moved sent = stream.send(message);
  if (sent.state == ClientStream::State::failed) fail(sent.error);
  HttpResponseParser parser;
  std::string body;
  std::array<char, 4096> bytes;
  try {
    while (!parser.is_complete()) {
      const ClientStream::Moved moved = stream.receive(bytes);
      if (moved.state != ClientStream::State::moved) {
        parser.closed();
        break;
      }
      parser.feed({bytes.data(), moved.bytes}, [&](std::string_view piece) { body.append(piece); });
      if (body.size() > (4U << 20)) fail("an answer of more than 4 MiB");
    }
  } catch (const InputError& error) {
    fail(error.problem().expected);
  }
  if (parser.status() != 200) fail(fmt::format("status {}: {}", parser.status(), server_error_text(body)));
  return body;
}

}  // namespace

std::string served_model(const LoadClientSettings& settings) {
  const Json list = parse_json(get(settings, "/v1/models"), "/v1/models");
  const std::vector<JsonView> models = JsonView(list, "/v1/models").at("data").items();
  if (models.empty())
    throw InputError({.source = settings.server.flag, .value = "no models", .expected = "a server with a model"});
  return models.front().at("id").string();
}

MeasuredRun run_load(const LoadClientSettings& settings, const LoadMaker& load) {
  LoadClient client(settings);
  if (settings.warmups > 0) {
    WarmupSource warmup(load(settings.seed + 1), settings.warmups);
    const MeasuredRun before = client.run(warmup, false);
    const bool failed = std::none_of(before.requests.begin(), before.requests.end(), [](const MeasuredRequest& one) {
      return one.status == MeasuredStatus::completed;
    });
    if (failed && !before.requests.empty()) {
      throw InputError({.source = settings.server.flag,
                        .value = "no warm-up request was answered",
                        .expected = before.requests.front().error});
    }
  }
  const std::unique_ptr<RequestSource> source = load(settings.seed);
  return client.run(*source, true);
}

}  // namespace foretoken
