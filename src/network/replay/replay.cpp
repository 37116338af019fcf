#include "network/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "network/replay/stuck.h"

namespace foretoken {
namespace {

// What is under way on a rank, and its time so far by what that was.
class RankClock {
 public:
  int compute = 0, moving = 0, memory = 0, waiting = 0, host = 0;

  // To be called before a count changes.
  void account(Picoseconds now) {
    const Picoseconds passed = now - since_;
    since_ = now;
    if (passed == 0) return;
    if (moving > 0) times_.communication += passed;
    (compute > 0   ? times_.compute
     : moving > 0  ? times_.exposed_communication
     : memory > 0  ? times_.memory
     : waiting > 0 ? times_.waiting
     : host > 0    ? times_.host
                   : times_.idle) += passed;
  }

  RankTimes& times() { return times_; }

 private:
  Picoseconds since_ = 0;
  RankTimes times_;
};

// Kernels of a rank that run now, at the rate that collectives beside them leave. Shares are kept in millionths: whole
// numbers add up to nothing again when the collectives have ended.
class RankKernels {
 public:
  struct Kernel {
    uint32_t number = 0;
    Picoseconds left = 0;  // at full rate
  };

  // What is left of the kernels at `now`; to be called before anything changes.
  void advance(Picoseconds now) {
    const Picoseconds passed = now - since_;
    const Picoseconds done = passed / whole * free_millionths() + passed % whole * free_millionths() / whole;
    for (Kernel& kernel : running) kernel.left = std::max<Picoseconds>(0, kernel.left - done);
    since_ = now;
  }

  // How long kernels of that length take at the present rate, rounded up.
  Picoseconds time_for(Picoseconds left) const {
    const int64_t free = free_millionths();
    return left / free * whole + (left % free * whole + free - 1) / free;
  }

  std::vector<Kernel> running;
  int64_t busy_millionths = 0;

 private:
  static constexpr int64_t whole = 1'000'000;
  int64_t free_millionths() const {
    constexpr int64_t most_busy = 900'000;
    return whole - std::min(busy_millionths, most_busy);
  }

  Picoseconds since_ = 0;
};

struct Lane {
  bool busy = false;
  uint32_t last = no_node;  // the node that ran there last
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
};

class Replayer {
 public:
  Replayer(const ReplayWorkload& workload, ReplayNetwork& network, const ReplayOptions& options)
      : workload_(workload),
        network_(network),
        options_(options),
        numbers_(workload),
        matching_(match(workload, numbers_)),
        nodes_(numbers_.count()),
        arrived_(matching_.calls.size()),
        calls_(matching_.calls.size()),
        busy_millionths_(matching_.calls.size()),
        clocks_(workload.ranks.size()),
        kernels_(workload.ranks.size()) {
    uint32_t number = 0;
    for (uint32_t rank = 0; rank < workload.ranks.size(); ++rank) {
      const RankProgram& program = workload.ranks[rank];
      first_lane_.push_back(static_cast<uint32_t>(lanes_.size()));
      lanes_.resize(lanes_.size() + program.lanes.size());
      for (size_t place = 0; place < program.nodes.size(); ++place, ++number) {
        nodes_[number] = {.rank = rank, .missing = program.waits_for[place]};
      }
    }
    // Collectives of a group run one after the other: each waits for the one before it on its rank.
    for (const CollectiveCall& call : matching_.calls) {
      if (call.following == no_node) continue;
      for (const uint32_t member : matching_.members_of(matching_.calls[call.following], workload)) {
        ++nodes_[member].missing;
      }
    }
  }

  ReplayResult run() {
    for (uint32_t number = 0; number < nodes_.size(); ++number) {
      if (nodes_[number].missing == 0) ready(number, 0, no_node);
    }
    start_lanes(0);
    while (true) {
      drop_stale_events();
      const Picoseconds next = events_.empty() ? end_of_time : events_.top().time;
      const std::span<const uint32_t> ended = network_.advance(next);
      if (ended.empty() && next == end_of_time) break;
      const Picoseconds now = ended.empty() ? next : network_.now();
      for (const uint32_t number : ended) end_call(number, now);
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        if (!is_stale(event)) finish(event.node, now);
      }
      start_lanes(now);
      now_ = now;
    }
    if (finished_ < nodes_.size()) throw_stuck();
    return result();
  }

 private:
  struct Node {
    uint32_t rank = 0;
    uint32_t missing = 0;      // what it still waits for
    uint32_t cause = no_node;  // whose end let it start
    uint32_t version = 0;      // of the event that ends it: earlier ones no longer hold
    Picoseconds start = -1;
    Picoseconds finish = -1;
  };
  struct Event {
    Picoseconds time = 0;
    uint64_t order = 0;
    uint32_t node = 0;
    uint32_t version = 0;
    bool operator<(const Event& other) const {  // the queue has its largest on top
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  size_t place_of(uint32_t number) const { return number - numbers_.number(nodes_[number].rank, 0); }
  const ReplayNode& node_of(uint32_t number) const {
    return workload_.ranks[nodes_[number].rank].nodes[place_of(number)];
  }
  Lane& lane_of(uint32_t number, const ReplayNode& node) {
    return lanes_[first_lane_[nodes_[number].rank] + static_cast<size_t>(node.lane)];
  }
  RankClock& clock_of(uint32_t number, Picoseconds now) {
    RankClock& clock = clocks_[nodes_[number].rank];
    clock.account(now);
    return clock;
  }
  int& busy_count(RankClock& clock, ReplayKind kind) const {
    return kind == ReplayKind::compute ? clock.compute : kind == ReplayKind::memory ? clock.memory : clock.host;
  }

  void finish_at(uint32_t number, Picoseconds time) {
    events_.push({.time = time, .order = next_order_++, .node = number, .version = nodes_[number].version});
  }

  bool is_stale(const Event& event) const { return event.version != nodes_[event.node].version; }

  // A kernel that ends earlier than it was meant to leaves its later event behind: nothing happens then, so time must
  // not go there.
  void drop_stale_events() {
    while (!events_.empty() && is_stale(events_.top())) events_.pop();
  }

  void ready(uint32_t number, Picoseconds now, uint32_t cause) {
    Node& state = nodes_[number];
    const ReplayNode& node = node_of(number);
    state.cause = cause;
    switch (node.kind) {
      case ReplayKind::marker:
        state.start = now;
        finish_at(number, now);
        break;
      case ReplayKind::host:
      case ReplayKind::compute:
      case ReplayKind::memory: {
        Lane& lane = lane_of(number, node);
        lane.ready.push(number);
        if (!lane.busy) touched_.push_back(static_cast<uint32_t>(&lane - lanes_.data()));
        break;
      }
      case ReplayKind::collective:
        arrive(number, now);
        break;
      case ReplayKind::send:
        send(number, node, now);
        break;
      case ReplayKind::receive:
        post_receive(number, now);
        break;
    }
  }

  void start_lanes(Picoseconds now) {
    for (const uint32_t index : touched_) {
      Lane& lane = lanes_[index];
      if (lane.busy || lane.ready.empty()) continue;
      const uint32_t number = lane.ready.top();
      lane.ready.pop();
      Node& state = nodes_[number];
      const ReplayNode& node = node_of(number);
      // It may have been ready before: then the node on the lane before it was what held it up.
      const bool held_up = state.cause == no_node ? now > 0 : nodes_[state.cause].finish < now;
      if (held_up) state.cause = lane.last;
      lane.busy = true;
      lane.last = number;
      state.start = now;
      ++busy_count(clock_of(number, now), node.kind);
      finish_at(number, later(now, begin_kernel(number, node, now)));
    }
    touched_.clear();
  }

  // How long the node of a lane will take, if nothing changes beside it.
  Picoseconds begin_kernel(uint32_t number, const ReplayNode& node, Picoseconds now) {
    if (!options_.busy_share || node.kind != ReplayKind::compute) return node.duration;
    RankKernels& kernels = kernels_[nodes_[number].rank];
    kernels.advance(now);
    kernels.running.push_back({.number = number, .left = node.duration});
    return kernels.time_for(node.duration);
  }

  void end_kernel(uint32_t number, Picoseconds now) {
    if (!options_.busy_share) return;
    RankKernels& kernels = kernels_[nodes_[number].rank];
    kernels.advance(now);
    std::erase_if(kernels.running, [&](const RankKernels::Kernel& kernel) { return kernel.number == number; });
  }

  // A collective begins (or ends, with less than nothing) to keep processors of a rank busy.
  void take_processors(size_t rank, int64_t millionths, Picoseconds now) {
    if (millionths == 0) return;
    RankKernels& kernels = kernels_[rank];
    kernels.advance(now);
    kernels.busy_millionths += millionths;
    for (const RankKernels::Kernel& kernel : kernels.running) {
      ++nodes_[kernel.number].version;
      finish_at(kernel.number, later(now, kernels.time_for(kernel.left)));
    }
  }

  void arrive(uint32_t number, Picoseconds now) {
    const uint32_t index = matching_.partner[number];
    const CollectiveCall& call = matching_.calls[index];
    nodes_[number].start = now;
    ++clock_of(number, now).waiting;
    const std::span<const uint32_t> members = matching_.members_of(call, workload_);
    if (arrived_[index]++ == 0) {
      calls_[index] = {.kind = call.kind, .group = call.group, .bytes = call.bytes, .first_arrival = now};
    }
    if (arrived_[index] < members.size()) return;
    calls_[index].start = now;
    start_order_.push_back(index);
    const std::span<const int32_t> ranks = workload_.groups[static_cast<size_t>(call.group)].in_order();
    const auto root = call.root < 0 ? ranks.begin() : std::find(ranks.begin(), ranks.end(), call.root);
    const NetworkCall on_network{
        .kind = call.kind, .bytes = call.bytes, .ranks = ranks, .root = root - ranks.begin(), .kernel = call.kernel};
    if (options_.busy_share) busy_millionths_[index] = std::llround(options_.busy_share(on_network) * 1e6);
    const uint32_t cause = nodes_[number].cause;
    for (const uint32_t member : members) {
      nodes_[member].cause = cause;
      RankClock& clock = clock_of(member, now);
      --clock.waiting;
      ++clock.moving;
      take_processors(nodes_[member].rank, busy_millionths_[index], now);
    }
    network_.start(index, on_network, now);
  }

  void send(uint32_t number, const ReplayNode& node, Picoseconds now) {
    nodes_[number].start = now;
    ++clock_of(number, now).moving;
    const uint32_t receive = matching_.partner[number];
    if (nodes_[receive].start >= 0) {
      RankClock& clock = clock_of(receive, now);
      --clock.waiting;
      ++clock.moving;
    }
    const int32_t ends[] = {static_cast<int32_t>(nodes_[number].rank), node.peer};
    network_.start(static_cast<uint32_t>(matching_.calls.size()) + number,
                   {.kind = CollectiveKind::send_recv, .bytes = node.bytes, .ranks = ends}, now);
  }

  void post_receive(uint32_t number, Picoseconds now) {
    nodes_[number].start = now;
    const Node& sender = nodes_[matching_.partner[number]];
    if (sender.finish >= 0) {
      finish_at(number, now);
    } else {
      RankClock& clock = clock_of(number, now);
      ++(sender.start >= 0 ? clock.moving : clock.waiting);
    }
  }

  // A call of the network is over: a collective's number, or that of a send behind all collectives.
  void end_call(uint32_t number, Picoseconds now) {
    if (number < matching_.calls.size()) {
      calls_[number].finish = now;
      for (const uint32_t member : matching_.members_of(matching_.calls[number], workload_)) {
        --clock_of(member, now).moving;
        take_processors(nodes_[member].rank, -busy_millionths_[number], now);
        finish(member, now);
      }
      return;
    }
    const uint32_t sender = number - static_cast<uint32_t>(matching_.calls.size());
    const uint32_t receive = matching_.partner[sender];
    --clock_of(sender, now).moving;
    if (nodes_[receive].start >= 0) {
      --clock_of(receive, now).moving;
      nodes_[receive].cause = sender;
      finish_at(receive, now);
    }
    finish(sender, now);
  }

  void finish(uint32_t number, Picoseconds now) {
    Node& state = nodes_[number];
    const ReplayNode& node = node_of(number);
    state.finish = now;
    ++finished_;
    clocks_[state.rank].times().finish = now;
    if (node.lane >= 0) {
      Lane& lane = lane_of(number, node);
      lane.busy = false;
      touched_.push_back(static_cast<uint32_t>(&lane - lanes_.data()));
      --busy_count(clock_of(number, now), node.kind);
      if (node.kind == ReplayKind::compute) end_kernel(number, now);
    }
    const uint32_t first = numbers_.number(state.rank, 0);
    for (const uint32_t dependent : workload_.ranks[state.rank].dependents_of(number - first)) {
      release(first + dependent, now, number);
    }
    if (node.kind == ReplayKind::collective) {
      const CollectiveCall& call = matching_.calls[matching_.partner[number]];
      if (call.following == no_node) return;
      const auto seat = static_cast<size_t>(
          std::lower_bound(group_ranks(call).begin(), group_ranks(call).end(), static_cast<int32_t>(state.rank)) -
          group_ranks(call).begin());
      release(matching_.members[matching_.calls[call.following].first_member + seat], now, number);
    }
  }

  const std::vector<int32_t>& group_ranks(const CollectiveCall& call) const {
    return workload_.groups[static_cast<size_t>(call.group)].ranks;
  }

  void release(uint32_t number, Picoseconds now, uint32_t cause) {
    if (--nodes_[number].missing == 0) ready(number, now, cause);
  }

  [[noreturn]] void throw_stuck() const {
    std::vector<NodeRun> runs(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) runs[i] = {.start = nodes_[i].start, .finish = nodes_[i].finish};
    throw InputError({.source = workload_.ranks.front().source,
                      .path = "the replay of all ranks",
                      .value = "ranks wait for each other: " + waiting_circle(workload_, numbers_, matching_, runs),
                      .expected = "collectives and receives that can all be served"});
  }

  ReplayResult result() {
    ReplayResult result{.makespan = now_};
    for (RankClock& clock : clocks_) {
      clock.account(now_);
      result.ranks.push_back(clock.times());
    }
    for (const uint32_t index : start_order_) result.collectives.push_back(calls_[index]);
    uint32_t last = no_node;
    for (uint32_t number = 0; number < nodes_.size(); ++number) {
      const Node& node = nodes_[number];
      if (place_of(number) == 0) result.nodes.resize(node.rank + 1);
      result.nodes[node.rank].push_back({.start = node.start, .finish = node.finish});
      if (last == no_node || node.finish > nodes_[last].finish) last = number;
    }
    result.nodes.resize(workload_.ranks.size());
    result.critical_path = path_to(last);
    return result;
  }

  std::vector<PathStep> path_to(uint32_t last) const {
    std::vector<PathStep> path;
    for (uint32_t number = last; number != no_node; number = nodes_[number].cause) {
      const Node& node = nodes_[number];
      const Picoseconds start = node.cause == no_node ? 0 : nodes_[node.cause].finish;
      path.push_back(
          {.rank = node.rank, .node = static_cast<uint32_t>(place_of(number)), .start = start, .finish = node.finish});
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

  const ReplayWorkload& workload_;
  ReplayNetwork& network_;
  const ReplayOptions& options_;
  NodeNumbers numbers_;
  Matching matching_;
  std::vector<Node> nodes_;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> first_lane_;  // of each rank
  std::vector<uint32_t> touched_;     // lanes that may start a node now
  std::vector<size_t> arrived_;       // members of each call
  std::vector<CollectiveRun> calls_;
  std::vector<uint32_t> start_order_;
  std::vector<int64_t> busy_millionths_;  // that each call keeps from kernels
  std::vector<RankClock> clocks_;
  std::vector<RankKernels> kernels_;
  std::priority_queue<Event> events_;
  uint64_t next_order_ = 0;
  size_t finished_ = 0;
  Picoseconds now_ = 0;
};

}  // namespace

ReplayResult replay(const ReplayWorkload& workload, ReplayNetwork& network, const ReplayOptions& options) {
  return Replayer(workload, network, options).run();
}

}  // namespace foretoken
