#include "serving/load/sessions.h"

#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/simulated_time.h"
#include "base/text.h"
#include "serving/load/synthetic.h"

namespace foretoken {
namespace {

struct Turn {
  Picoseconds arrival = 0;
  int64_t session = 0;
  int64_t turn = 0;
  int64_t context_tokens = 0;  // said before it
  // A queue gives the greatest first: the latest arrival is the least.
  bool operator<(const Turn& other) const {
    return std::pair(arrival, session) > std::pair(other.arrival, other.session);
  }
};

class SessionLoad : public RequestSource {
 public:
  SessionLoad(const SessionSettings& settings, std::unique_ptr<LengthSource> lengths, uint64_t seed)
      : settings_(settings), starts_(settings.starts, seed), lengths_(std::move(lengths)), pauses_(seed, "pauses") {
    check_sessions(settings);
    start_next_session();
  }

  std::optional<Picoseconds> next_arrival() override {
    if (ready_.empty()) return std::nullopt;
    return ready_.top().arrival;
  }

  Request next() override {
    ensure(!ready_.empty(), "a request is taken only where one is known");
    const Turn turn = ready_.top();
    ready_.pop();
    if (turn.turn == 0) start_next_session();
    const RequestLengths lengths = lengths_->next();
    Request request{.id = next_id_,
                    .arrival = turn.arrival,
                    .input_tokens = turn.context_tokens + lengths.input_tokens,
                    .output_tokens = lengths.output_tokens,
                    .session = turn.session};
    const int64_t said = request.input_tokens + request.output_tokens;
    add_blocks(request, said);
    in_flight_[next_id_++] = {
        .arrival = turn.arrival, .session = turn.session, .turn = turn.turn, .context_tokens = said};
    return request;
  }

  void ended(int64_t id, Picoseconds when) override {
    Turn turn = take_sent(id);
    if (++turn.turn == settings_.turns || turn.context_tokens >= settings_.longest) return;
    const bool after_tool = pauses_.uniform() < settings_.tool_share;
    turn.arrival =
        when + to_picoseconds(Seconds(pauses_.exponential(after_tool ? settings_.tool_s : settings_.think_s)));
    ready_.push(turn);
  }

  // Nobody answered: there is nothing to go on from.
  void rejected(int64_t id, Picoseconds /*when*/) override { take_sent(id); }

 private:
  Turn take_sent(int64_t id) {
    const auto found = in_flight_.find(id);
    ensure(found != in_flight_.end(), "a turn that ends was sent");
    const Turn turn = found->second;
    in_flight_.erase(found);
    return turn;
  }

  void start_next_session() {
    if (sessions_ == settings_.starts.count) return;
    ready_.push({.arrival = starts_.next(), .session = sessions_++, .context_tokens = settings_.system_tokens});
  }

  // The system prompt's blocks are everybody's; all others carry the conversation's number.
  void add_blocks(Request& request, int64_t tokens) const {
    constexpr int64_t longest_session = int64_t{1} << 32;  // blocks
    request.prefix_block_tokens = made_up_block_tokens;
    const int64_t shared = settings_.system_tokens / made_up_block_tokens;
    const int64_t blocks = tokens / made_up_block_tokens;
    request.prefix_blocks.reserve(static_cast<size_t>(blocks));
    for (int64_t block = 0; block < blocks; ++block) {
      request.prefix_blocks.push_back(block < shared ? block : (request.session + 1) * longest_session + block);
    }
  }

  SessionSettings settings_;
  Arrivals starts_;
  std::unique_ptr<LengthSource> lengths_;
  RandomStream pauses_;
  std::priority_queue<Turn> ready_;
  std::map<int64_t, Turn> in_flight_;  // by request: the turn, with what will have been said after it
  int64_t sessions_ = 0;
  int64_t next_id_ = 0;
};

}  // namespace

void check_sessions(const SessionSettings& settings) {
  const auto check = [](bool holds, const char* flag, double value, const char* expected) {
    if (!holds) throw InputError({.source = flag, .value = number_text(value), .expected = expected});
  };
  check_arrivals(settings.starts);
  check_prefixes({.tokens = settings.system_tokens});
  check(settings.turns >= 1, "--turns", static_cast<double>(settings.turns), "at least one turn");
  check(settings.think_s >= 0, "--think-time", settings.think_s, "seconds of at least 0");
  check(settings.tool_s >= 0, "--tool-time", settings.tool_s, "seconds of at least 0");
  check(settings.tool_share >= 0 && settings.tool_share <= 1, "--tool-share", settings.tool_share, "from 0 to 1");
}

std::unique_ptr<RequestSource> session_load(const SessionSettings& settings, std::unique_ptr<LengthSource> lengths,
                                            uint64_t seed) {
  return std::make_unique<SessionLoad>(settings, std::move(lengths), seed);
}

}  // namespace foretoken
