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
  int64_t answer_tokens = 0;   // of the last answer
  int64_t parent = -1;         // the conversation that waits for this one; -1 = none
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
    if (turn.turn == 0 && turn.parent < 0) start_next_session();
    const RequestLengths lengths = lengths_->next();
    Request request{.id = next_id_,
                    .arrival = turn.arrival,
                    .input_tokens = turn.context_tokens + lengths.input_tokens,
                    .output_tokens = lengths.output_tokens,
                    .session = turn.session,
                    .thinking_tokens = lengths.thinking_tokens};
    const int64_t answer = request.output_tokens - request.thinking_tokens;
    const int64_t said = request.input_tokens + answer;
    add_blocks(request, request.thinking_tokens > 0 ? request.input_tokens : said);
    in_flight_[next_id_++] = {.arrival = turn.arrival,
                              .session = turn.session,
                              .turn = turn.turn,
                              .context_tokens = said,
                              .answer_tokens = answer,
                              .parent = turn.parent};
    return request;
  }

  void ended(int64_t id, Picoseconds when) override {
    Turn turn = take_sent(id);
    const int64_t turns = turn.parent < 0 ? settings_.turns : settings_.subagent_turns;
    if (++turn.turn == turns || turn.context_tokens >= settings_.longest) {
      report_back(turn, turn.answer_tokens, when);
      return;
    }
    if (settings_.subagents > 0 && turn.parent < 0 && pauses_.uniform() < settings_.subagent_share) {
      fan_out(turn, when);
      return;
    }
    const bool after_tool = pauses_.uniform() < settings_.tool_share;
    turn.arrival =
        when + to_picoseconds(Seconds(pauses_.exponential(after_tool ? settings_.tool_s : settings_.think_s)));
    ready_.push(turn);
  }

  // Nobody answered: there is nothing to go on from.
  void rejected(int64_t id, Picoseconds when) override { report_back(take_sent(id), 0, when); }

 private:
  struct Waiting {
    Turn turn;  // the next, when all agents have ended
    int64_t agents = 0;
  };

  void fan_out(const Turn& turn, Picoseconds when) {
    waiting_[turn.session] = {.turn = turn, .agents = settings_.subagents};
    for (int64_t i = 0; i < settings_.subagents; ++i) {
      ready_.push({.arrival = when,
                   .session = settings_.starts.count + agents_++,
                   .context_tokens = settings_.system_tokens,
                   .parent = turn.session});
    }
  }

  // An agent has ended, with so many tokens for the one that waits for it.
  void report_back(const Turn& agent, int64_t tokens, Picoseconds when) {
    if (agent.parent < 0) return;
    const auto found = waiting_.find(agent.parent);
    ensure(found != waiting_.end(), "agents work for a conversation that waits");
    Waiting& waiting = found->second;
    waiting.turn.context_tokens += tokens;
    if (--waiting.agents > 0) return;
    waiting.turn.arrival = when;
    ready_.push(waiting.turn);
    waiting_.erase(found);
  }

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
  std::map<int64_t, Turn> in_flight_;   // by request: the turn, with what will have been said after it
  std::map<int64_t, Waiting> waiting_;  // by conversation
  int64_t sessions_ = 0, agents_ = 0;
  int64_t next_id_ = 0;
};

}  // namespace

void check_sessions(const SessionSettings& settings) {
  const auto check = [](bool holds, const char* field, double value, const char* expected) {
    if (!holds) throw InputError({.field = field, .value = number_text(value), .expected = expected});
  };
  check_arrivals(settings.starts);
  check_prefixes({.tokens = settings.system_tokens});
  check(settings.turns >= 1, "turns", static_cast<double>(settings.turns), "at least one turn");
  check(settings.think_s >= 0, "think_time", settings.think_s, "a number of seconds, at least 0");
  check(settings.tool_s >= 0, "tool_time", settings.tool_s, "a number of seconds, at least 0");
  check(settings.tool_share >= 0 && settings.tool_share <= 1, "tool_share", settings.tool_share, "a share from 0 to 1");
  check(settings.subagents >= 0, "subagents", static_cast<double>(settings.subagents), "at least 0");
  check(settings.subagent_turns >= 1, "subagent_turns", static_cast<double>(settings.subagent_turns),
        "at least one turn");
  check(settings.subagent_share >= 0 && settings.subagent_share <= 1, "subagent_share", settings.subagent_share,
        "a share from 0 to 1");
}

std::unique_ptr<RequestSource> session_load(const SessionSettings& settings, std::unique_ptr<LengthSource> lengths,
                                            uint64_t seed) {
  return std::make_unique<SessionLoad>(settings, std::move(lengths), seed);
}

}  // namespace foretoken
