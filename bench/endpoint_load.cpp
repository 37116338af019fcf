// Many streams at once from `foretoken endpoint`: is any token lost, doubled or out of order, and do they come when the
// simulation says? Every answer is compared with the words that its prompt must give, and its times with those that the
// server reports as simulated.
//
//   foretoken endpoint --model Llama-3.1-8B --device h100_sxm --replicas 8 --port 8000 &
//   endpoint_load --port 8000 --streams 2000 --seconds 60 --pid $!
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/endpoint/tokens.h"
#include "app/http/file_descriptor.h"
#include "base/error.h"
#include "base/json.h"
#include "base/statistics.h"
#include "base/text.h"

namespace foretoken {
namespace {

using Clock = std::chrono::system_clock;  // the kernel's stamps are of this clock

// When the kernel put the last of these bytes into the socket: what they wait there is this client's doing.
std::optional<Clock::time_point> arrival_stamp(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec stamp{};
    std::memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(stamp.tv_sec) +
                                                                         std::chrono::nanoseconds(stamp.tv_nsec)));
  }
  return std::nullopt;
}

struct Settings {
  std::string host = "127.0.0.1";
  int64_t port = 8000, streams = 2000, prompt_tokens = 64, output_tokens = 128, seed = 0, pid = 0;
  double seconds = 20;  // after which no stream begins again
  double ramp = 2;      // in which the first of all streams begin
  double time_scale = 1;
};

struct Results {
  int64_t requests = 0, chunks = 0, wrong = 0;
  std::string first_wrong;
  std::vector<double> ttft, e2el;             // measured over simulated, less one
  std::vector<double> first_late, last_late;  // seconds on the wall after the schedule
};

std::vector<TokenId> prompt_of(const Settings& settings, int64_t stream, int64_t round) {
  std::vector<TokenId> prompt = {static_cast<TokenId>(stream), static_cast<TokenId>(round)};
  while (static_cast<int64_t>(prompt.size()) < settings.prompt_tokens) {
    prompt.push_back(static_cast<TokenId>(prompt.size()));
  }
  return prompt;
}

// One connection that asks again and again.
class Stream {
 public:
  Stream(const Settings& settings, int64_t number, Results& results)
      : settings_(&settings), number_(number), results_(&results) {}

  void connect_to(int poll) {
    socket_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket_.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(settings_->port))};
    inet_pton(AF_INET, settings_->host.c_str(), &address.sin_addr);
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno != EINPROGRESS) {
      no_server(errno);
    }
    epoll_event event{.events = EPOLLOUT, .data = {.ptr = this}};
    epoll_ctl(poll, EPOLL_CTL_ADD, socket_.get(), &event);
  }

  // The socket has become writable, or could not: then nothing listens, and no stream will be better.
  void check_connected() const {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) no_server(error);
  }

  void ask(int poll) {
    const std::vector<TokenId> prompt = prompt_of(*settings_, number_, round_);
    key_ = answer_key(prompt_key(prompt, static_cast<uint64_t>(settings_->seed)), 0);
    const std::string body = fmt::format(
        R"({{"prompt":[{}],"max_tokens":{},"ignore_eos":true,"stream":true,"stream_options":{{"include_usage":true}}}})",
        fmt::join(prompt, ","), settings_->output_tokens);
    const std::string request =
        fmt::format("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
    ++round_;
    answer_.clear();
    text_.clear();
    chunks_ = 0;
    done_ = head_read_ = false;
    sent_at_ = Clock::now();
    if (send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      return fail("the request could not be sent");
    }
    epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
    epoll_ctl(poll, EPOLL_CTL_MOD, socket_.get(), &event);
  }

  void receive() {
    static thread_local std::vector<char> buffer(64 * 1024);
    std::array<char, 128> control;  // NOLINT: the kernel fills it
    iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
    msghdr message{.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.data(), .msg_controllen = control.size()};
    const ssize_t count = recvmsg(socket_.get(), &message, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return fail("the server closed the connection");
    received_at_ = arrival_stamp(message).value_or(Clock::now());
    answer_.append(buffer.data(), static_cast<size_t>(count));
  }

  // True when an answer is complete, or nothing more comes.
  bool check_received() {
    if (ended_ || (!head_read_ && !read_head())) return ended_;
    while (take_chunk(received_at_)) {
    }
    return ended_ || done_;
  }

  bool ended() const { return ended_; }

 private:
  [[noreturn]] void no_server(int error) const {
    throw InputError({.source = "--port",
                      .value = fmt::format("{} of {}: {}", settings_->port, settings_->host, std::strerror(error)),
                      .expected = "where `foretoken endpoint` listens"});
  }

  bool read_head() {
    const size_t end = answer_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    if (!answer_.starts_with("HTTP/1.1 200 ")) {
      fail(answer_.substr(0, 200));
      return false;
    }
    answer_.erase(0, end + 4);
    head_read_ = true;
    return true;
  }

  // A chunk of the transfer holds whole events.
  bool take_chunk(Clock::time_point now) {
    const size_t line = answer_.find("\r\n");
    if (line == std::string::npos) return false;
    const size_t size = std::stoul(answer_.substr(0, line), nullptr, 16);
    if (answer_.size() < line + 2 + size + 2) return false;
    if (size == 0) {
      finish();
    } else {
      take_events(std::string_view(answer_).substr(line + 2, size), now);
    }
    answer_.erase(0, line + 2 + size + 2);
    return size > 0;
  }

  void take_events(std::string_view events, Clock::time_point now) {
    while (!events.empty()) {
      const size_t end = events.find("\n\n");
      if (end == std::string_view::npos || !events.starts_with("data: ")) return fail("an event in pieces");
      take_event(events.substr(6, end - 6), now);
      events.remove_prefix(end + 2);
    }
  }

  void take_event(std::string_view event, Clock::time_point now) {
    constexpr std::string_view before_text = "\"text\":\"";
    if (event == "[DONE]") {
      done_event_ = true;
    } else if (const size_t at = event.find(before_text); at != std::string_view::npos) {
      const size_t begin = at + before_text.size();
      text_ += event.substr(begin, event.find('"', begin) - begin);
      if (chunks_++ == 0) first_at_ = now;
      last_at_ = now;
      if (event.find("\"foretoken\"") != std::string_view::npos) last_event_ = event;
    } else {
      usage_event_ = event;
    }
  }

  void finish() {
    done_ = true;
    ++results_->requests;
    results_->chunks += chunks_;
    if (text_ != answer_text(key_, 0, settings_->output_tokens)) return fail("other words than the prompt must give");
    if (chunks_ != settings_->output_tokens) return fail("not one chunk for each token");
    if (!std::exchange(done_event_, false)) return fail("no [DONE]");
    if (usage_event_.find(fmt::format("\"completion_tokens\":{},", chunks_)) == std::string::npos) {
      return fail("another number of tokens in the usage");
    }
    const Json last = parse_json(last_event_, "last event");
    const JsonView times = JsonView(last, "last event").at("choices").items().front().at("foretoken");
    const auto compare = [&](Clock::time_point when, const char* simulated, std::vector<double>& off,
                             std::vector<double>& late) {
      const double measured = std::chrono::duration<double>(when - sent_at_).count();
      const double meant = times.at(simulated).number() / settings_->time_scale;
      off.push_back(measured / meant - 1);
      late.push_back(measured - meant);
    };
    compare(first_at_, "ttft_s", results_->ttft, results_->first_late);
    compare(last_at_, "e2e_s", results_->e2el, results_->last_late);
  }

  void fail(const std::string& why) {
    if (results_->wrong++ == 0) results_->first_wrong = fmt::format("stream {}, round {}: {}", number_, round_, why);
    ended_ = true;
  }

  const Settings* settings_;
  int64_t number_, round_ = 0, chunks_ = 0;
  Results* results_;
  FileDescriptor socket_;
  uint64_t key_ = 0;
  std::string answer_, text_, last_event_, usage_event_;
  bool head_read_ = false, done_ = false, done_event_ = false, ended_ = false;
  Clock::time_point sent_at_, received_at_, first_at_, last_at_;
};

// That the process has used so far, of user and system.
double cpu_seconds(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string stat((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));  // its name may hold spaces
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t resident_kib(int64_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

Settings read_settings(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, int64_t*> integers = {{"--port", &settings.port},
                                                    {"--streams", &settings.streams},
                                                    {"--prompt-tokens", &settings.prompt_tokens},
                                                    {"--output-tokens", &settings.output_tokens},
                                                    {"--seed", &settings.seed},
                                                    {"--pid", &settings.pid}};
  const std::map<std::string, double*> numbers = {
      {"--seconds", &settings.seconds}, {"--ramp", &settings.ramp}, {"--time-scale", &settings.time_scale}};
  const auto usage = [&] {
    std::string flags;
    for (const auto& [name, value] : integers) flags += fmt::format(" [{} {}]", name, *value);
    for (const auto& [name, value] : numbers) flags += fmt::format(" [{} {:g}]", name, *value);
    return "usage: endpoint_load" + flags;
  };
  const std::string defaults = usage();
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], text = i + 1 < argc ? argv[i + 1] : "";
    const auto integer = integers.find(flag);
    const auto number = numbers.find(flag);
    const std::optional<double> value = parse_number(text);
    const std::optional<int64_t> whole = parse_integer(text);
    if (integer != integers.end() && whole) {
      *integer->second = *whole;
    } else if (number != numbers.end() && value) {
      *number->second = *value;
    } else {
      throw InputError({.source = flag, .value = printable(text), .expected = "a flag and a number\n" + defaults});
    }
  }
  return settings;
}

void print_deviation(const char* name, const std::vector<double>& off, const std::vector<double>& late) {
  if (off.empty()) return;
  fmt::print(
      "{} against the schedule: p50 {:+.2f}%, p99 {:+.2f}%, worst {:+.2f}%; late by {:.2f} ms p50, {:.2f} ms p99, "
      "{:.2f} ms "
      "worst\n",
      name, 100 * quantile(off, 0.5), 100 * quantile(off, 0.99), 100 * quantile(off, 1), 1e3 * quantile(late, 0.5),
      1e3 * quantile(late, 0.99), 1e3 * quantile(late, 1));
}

int run(const Settings& settings) {
  const auto files = static_cast<rlim_t>(settings.streams + 64);
  const rlimit limit{.rlim_cur = files, .rlim_max = files};
  setrlimit(RLIMIT_NOFILE, &limit);
  const FileDescriptor poll(epoll_create1(EPOLL_CLOEXEC));
  Results results;
  std::vector<Stream> streams;
  for (int64_t i = 0; i < settings.streams; ++i) streams.emplace_back(settings, i, results);
  const Clock::time_point begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<epoll_event> events(512);
  int64_t started = 0, running = 0, most_running = 0;
  double next_sample = 0;
  std::vector<int64_t> resident;
  const double cpu_before = settings.pid > 0 ? cpu_seconds(settings.pid) : 0;
  while (started < settings.streams || running > 0) {
    while (started < settings.streams &&
           elapsed() >= settings.ramp * static_cast<double>(started) / static_cast<double>(settings.streams)) {
      streams[static_cast<size_t>(started++)].connect_to(poll.get());
      most_running = std::max(most_running, ++running);
    }
    const int count =
        epoll_wait(poll.get(), events.data(), static_cast<int>(events.size()), started < settings.streams ? 1 : 1000);
    const auto event = [&](int i) { return events[static_cast<size_t>(i)]; };
    const auto is_reply = [&](int i) { return (event(i).events & EPOLLOUT) == 0; };
    // All that has arrived is read first: two tokens of a stream that wait together have one stamp.
    for (int i = 0; i < count; ++i) {
      if (is_reply(i)) static_cast<Stream*>(event(i).data.ptr)->receive();
    }
    for (int i = 0; i < count; ++i) {
      Stream& stream = *static_cast<Stream*>(event(i).data.ptr);
      if (!is_reply(i)) {
        stream.check_connected();
        stream.ask(poll.get());
      } else if (stream.check_received()) {
        if (!stream.ended() && elapsed() < settings.seconds) {
          stream.ask(poll.get());
        } else {
          --running;
          stream = Stream(settings, 0, results);  // closes
        }
      }
    }
    if (settings.pid > 0 && elapsed() >= next_sample) {
      resident.push_back(resident_kib(settings.pid));
      next_sample += 5;
    }
  }
  const double seconds = elapsed();
  fmt::print("{} streams at a time, {} answers, {} chunks in {:.1f} s ({:.0f} chunks/s); {} wrong\n", most_running,
             results.requests, results.chunks, seconds, static_cast<double>(results.chunks) / seconds, results.wrong);
  if (results.wrong > 0) fmt::print("first wrong: {}\n", results.first_wrong);
  print_deviation("TTFT", results.ttft, results.first_late);
  print_deviation("end to end", results.e2el, results.last_late);
  if (settings.pid > 0 && results.chunks > 0) {
    const double cpu = cpu_seconds(settings.pid) - cpu_before;
    fmt::print("CPU time of the server: {:.2f} s, {:.2f} s for a million chunks\n", cpu,
               cpu * 1e6 / static_cast<double>(results.chunks));
  }
  if (!resident.empty()) fmt::print("resident memory of the server, MiB every 5 s:");
  for (const int64_t kib : resident) fmt::print(" {}", kib / 1024);
  if (!resident.empty()) fmt::print("\n");
  return results.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  try {
    return foretoken::run(foretoken::read_settings(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
